#pragma once
#include <caf/all.hpp>
#include "kernels/base/result.hpp"
