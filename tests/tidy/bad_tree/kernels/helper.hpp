#pragma once
#include "netem/fabric.hpp"
