// Labelled images of one size, such as MNIST, in a fixed random order. The last tenth is held out.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// A sample is the bytes of an image, then its label. The order does not depend on the run's seed.
struct image_samples {
  std::size_t bytes = 0, training = 0;
  std::vector<std::byte> all;

  std::size_t count() const { return all.size() / bytes; }
  std::span<const std::byte> sample(std::size_t i) const {
    return std::span(all).subspan(i * bytes, bytes);
  }
};

/// The images that a scenario expects. Messages name the options `size` and `classes` of `section`.
struct expected_images {
  std::uint64_t size = 0, classes = 0;
  std::string_view section;
};

/// Reads IDX files. Errors: files that cannot be read, other sizes or labels than expected, fewer
/// than 10 images.
result<image_samples> read_image_samples(const std::string& images, const std::string& labels,
                                         const expected_images& expected);

} // namespace shoal::scenarios
