// A picture in memory: red, green and blue from 0 to 1, row by row.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::learn {

struct picture {
  std::size_t width = 0, height = 0;
  std::vector<float> rgb; ///< [height, width, 3]
};

/// White everywhere.
picture white_picture(std::size_t width, std::size_t height);

/// The picture scaled by the mean over areas, so that its longer side has `side` pixels. White
/// fills the rest of the square. Requires: a picture that is not empty, side > 0.
picture squared(const picture& from, std::size_t side);

/// The ratio of the longer side to the shorter one. Requires: a picture that is not empty.
double aspect_of(const picture& of);

/// Pictures in rows of `columns`, with a white border around each; each pixel becomes a square of
/// `zoom` pixels. Requires: pictures of equal sizes, columns > 0, zoom > 0.
picture contact_sheet(std::span<const picture> pictures, std::size_t columns, std::size_t zoom);

/// 10 log10(1 / mean squared error) in dB; infinity for equal pictures.
double psnr(double mean_squared_error);
/// Requires: pictures of equal sizes.
double squared_error(const picture& a, const picture& b);

} // namespace shoal::learn
