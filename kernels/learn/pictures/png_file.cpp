#include "kernels/learn/pictures/png_file.hpp"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::learn {

namespace {

constexpr std::uint32_t most_pixels = 4096;

failure refused(const std::filesystem::path& path, const std::string& why) {
  return failure{"picture: '" + path.string() + "' " + why};
}

} // namespace

result<picture> read_png(const std::filesystem::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0)
    return refused(path, std::string("cannot be read as PNG: ") + image.message);
  if (image.width > most_pixels || image.height > most_pixels) {
    png_image_free(&image);
    return refused(path, "has more than 4096 pixels on a side");
  }
  image.format = PNG_FORMAT_RGBA;
  std::vector<std::uint8_t> bytes(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, bytes.data(), 0, nullptr) == 0)
    return refused(path, std::string("cannot be read as PNG: ") + image.message);
  auto out = white_picture(image.width, image.height);
  for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
    const float opaque = static_cast<float>(bytes[4 * i + 3]) / 255;
    for (std::size_t c = 0; c < 3; ++c)
      out.rgb[3 * i + c] = opaque * static_cast<float>(bytes[4 * i + c]) / 255 + (1 - opaque);
  }
  return out;
}

result<void> write_png(const picture& from, const std::filesystem::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<std::uint32_t>(from.width);
  image.height = static_cast<std::uint32_t>(from.height);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(from.rgb.size());
  for (const float value : from.rgb)
    bytes.push_back(static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0F, 1.0F))));
  if (png_image_write_to_file(&image, path.c_str(), 0, bytes.data(), 0, nullptr) == 0)
    return refused(path, std::string("cannot be written: ") + image.message);
  return {};
}

} // namespace shoal::learn
