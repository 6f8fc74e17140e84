// A picture as its square patches side by side, as coders learn and read them. A patch keeps the
// order of its pixels in the picture.
#pragma once

#include "kernels/learn/pictures/picture.hpp"
#include "kernels/learn/pictures/picture_coder.hpp"

#include <span>
#include <vector>

namespace shoal::learn {

/// The patches row by row [places, patch_values]. Requires: a picture of grid.pixels() squared.
std::vector<float> patches_of(const picture& from, const coder_grid& grid);

/// The picture with these patches. Requires: `patches` [places, patch_values].
picture picture_of(std::span<const float> patches, const coder_grid& grid);

} // namespace shoal::learn
