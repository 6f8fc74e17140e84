#pragma once
#include "kernels/learn/model.hpp"
#include "tests/support/world.hpp"
