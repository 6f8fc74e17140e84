// The losses of the runs of several variants, in one picture.
#pragma once

#include "scenarios/compare/run_versus.hpp"

#include <string>

namespace shoal::tools {

/// An SVG file: the loss over the time of each run, with a colour for each variant. The loss is
/// that on held-out text, where runs measured it twice or more, and otherwise that of training.
std::string versus_picture(const scenarios::run_versus& what);

} // namespace shoal::tools
