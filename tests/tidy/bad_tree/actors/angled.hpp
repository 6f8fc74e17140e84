#pragma once
#  include <netem/fabric.hpp>
#include "../netem/fabric.hpp"
