#pragma once
#include "kernels/base/result.hpp"
