#include "kernels/learn/pictures/patches.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cstddef>

namespace shoal::learn {

namespace {

/// Calls use(a, b, count) for each row of pixels of each patch: its begin in the picture and in the
/// patches.
template <class Use>
void each_row(const coder_grid& grid, Use use) {
  const auto row = 3 * grid.patch;
  for (std::size_t y = 0; y < grid.pixels(); ++y)
    for (std::size_t c = 0; c < grid.side; ++c)
      use((y * grid.side + c) * row,
          ((y / grid.patch * grid.side + c) * grid.patch + y % grid.patch) * row, row);
}

} // namespace

std::vector<float> patches_of(const picture& from, const coder_grid& grid) {
  SHOAL_CHECK(from.width == grid.pixels() && from.height == grid.pixels(),
              "a picture has the size of the grid");
  std::vector<float> out(from.rgb.size());
  each_row(grid, [&](std::size_t at, std::size_t place, std::size_t count) {
    std::copy_n(from.rgb.data() + at, count, out.data() + place);
  });
  return out;
}

picture picture_of(std::span<const float> patches, const coder_grid& grid) {
  SHOAL_CHECK(patches.size() == grid.places() * grid.patch_values(),
              "a picture has a patch for each place");
  auto out = white_picture(grid.pixels(), grid.pixels());
  each_row(grid, [&](std::size_t at, std::size_t place, std::size_t count) {
    std::copy_n(patches.data() + place, count, out.rgb.data() + at);
  });
  return out;
}

} // namespace shoal::learn
