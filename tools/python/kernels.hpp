// The kernels, codecs and aggregators on NumPy arrays. Arrays are used where they lie, so they have
// to be contiguous and of the type float32.
#pragma once

#include "kernels/reduce_weighted_mean.hpp"

#include <pybind11/numpy.h>

#include <span>
#include <string>
#include <vector>

namespace shoal::python {

void add_kernels(pybind11::module_& to);

} // namespace shoal::python
