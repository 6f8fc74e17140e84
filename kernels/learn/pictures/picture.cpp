#include "kernels/learn/pictures/picture.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::learn {

picture white_picture(std::size_t width, std::size_t height) {
  return {width, height, std::vector<float>(width * height * 3, 1.0F)};
}

picture squared(const picture& from, std::size_t side) {
  SHOAL_CHECK(from.width > 0 && from.height > 0 && side > 0, "a picture has pixels");
  if (from.width == side && from.height == side) return from;
  const auto longer = std::max(from.width, from.height);
  const auto scaled = [&](std::size_t of) {
    return std::max<std::size_t>(1, (of * side + longer / 2) / longer);
  };
  const auto width = scaled(from.width), height = scaled(from.height);
  auto out = white_picture(side, side);
  const auto left = (side - width) / 2, top = (side - height) / 2;
  // The part of the source pixel i that lies between `low` and `high`.
  const auto overlap = [](std::size_t i, double low, double high) {
    const auto at = static_cast<double>(i);
    return std::max(0.0, std::min(at + 1, high) - std::max(at, low));
  };
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x) {
      const double step_x = static_cast<double>(from.width) / static_cast<double>(width),
                   step_y = static_cast<double>(from.height) / static_cast<double>(height);
      const double x0 = static_cast<double>(x) * step_x, y0 = static_cast<double>(y) * step_y;
      double sum[3] = {0, 0, 0}, area = 0;
      for (auto v = static_cast<std::size_t>(y0); v < from.height; ++v) {
        const double tall = overlap(v, y0, y0 + step_y);
        if (tall <= 0) break;
        for (auto u = static_cast<std::size_t>(x0); u < from.width; ++u) {
          const double wide = overlap(u, x0, x0 + step_x);
          if (wide <= 0) break;
          for (std::size_t c = 0; c < 3; ++c)
            sum[c] += tall * wide * from.rgb[3 * (v * from.width + u) + c];
          area += tall * wide;
        }
      }
      for (std::size_t c = 0; c < 3; ++c)
        out.rgb[3 * ((top + y) * side + left + x) + c] =
            static_cast<float>(area > 0 ? sum[c] / area : 1);
    }
  return out;
}

double aspect_of(const picture& of) {
  return static_cast<double>(std::max(of.width, of.height)) /
         static_cast<double>(std::min(of.width, of.height));
}

picture contact_sheet(std::span<const picture> pictures, std::size_t columns, std::size_t zoom) {
  SHOAL_CHECK(columns > 0 && zoom > 0, "a sheet has columns");
  if (pictures.empty()) return white_picture(1, 1);
  const auto width = pictures[0].width, height = pictures[0].height;
  columns = std::min(columns, pictures.size());
  const auto rows = (pictures.size() + columns - 1) / columns, border = 2 * zoom;
  auto out = white_picture(columns * (width * zoom + border) + border,
                           rows * (height * zoom + border) + border);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const auto& one = pictures[i];
    SHOAL_CHECK(one.width == width && one.height == height, "pictures of a sheet are equally big");
    const auto left = border + (i % columns) * (width * zoom + border),
               top = border + (i / columns) * (height * zoom + border);
    for (std::size_t y = 0; y < height * zoom; ++y)
      for (std::size_t x = 0; x < width * zoom; ++x)
        std::copy_n(
            one.rgb.begin() + static_cast<std::ptrdiff_t>(3 * ((y / zoom) * width + x / zoom)), 3,
            out.rgb.begin() + static_cast<std::ptrdiff_t>(3 * ((top + y) * out.width + left + x)));
  }
  return out;
}

double psnr(double mean_squared_error) {
  return mean_squared_error > 0 ? -10 * std::log10(mean_squared_error)
                                : std::numeric_limits<double>::infinity();
}

double squared_error(const picture& a, const picture& b) {
  SHOAL_CHECK(a.rgb.size() == b.rgb.size() && !a.rgb.empty(), "pictures are equally big");
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i)
    sum += std::pow(static_cast<double>(a.rgb[i]) - b.rgb[i], 2);
  return sum / static_cast<double>(a.rgb.size());
}

} // namespace shoal::learn
