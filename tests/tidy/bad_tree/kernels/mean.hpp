#pragma once
#include "kernels/base/result.hpp"

#include <caf/all.hpp>
