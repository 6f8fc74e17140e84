#pragma once
#include "kernels/helper.hpp"
