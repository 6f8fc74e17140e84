// PNG files, by libpng.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/pictures/picture.hpp"

#include <filesystem>

namespace shoal::learn {

/// Reads a PNG of any kind. Transparent pixels are laid on white.
/// Errors: a file that cannot be read, is no PNG, or has more than 4096 pixels on a side.
result<picture> read_png(const std::filesystem::path& path);

/// Writes 8 bits for each colour; values outside 0 to 1 are cut off. Errors: the path and the
/// reason.
result<void> write_png(const picture& from, const std::filesystem::path& path);

} // namespace shoal::learn
