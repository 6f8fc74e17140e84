// The ends of a network that classifies images: x = A pixels + a, z = B norm(x) + b. A sample is
// the bytes of an image, then its label. A pixel p counts as (p / 255 - mean) / deviation.
#pragma once

#include "kernels/learn/mixture_network.hpp"

namespace shoal::learn {

struct image_shape {
  std::size_t pixels = 784, classes = 10, width = 64;
  /// The mean and the deviation of the pixels of MNIST, from 0 to 1.
  double mean = 0.1307, deviation = 0.3081;
};

/// Requires: sizes that are not 0, samples whose labels are below `classes`.
std::shared_ptr<const network_ends> make_image_ends(const image_shape& shape);

} // namespace shoal::learn
