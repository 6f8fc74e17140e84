#include "kernels/learn/kv_cache.hpp"

#include <algorithm>
#include <string>

namespace shoal::learn {

kv_cache::kv_cache(std::size_t layers, std::size_t samples, std::size_t most, std::size_t width)
    : layers_(layers), samples_(samples), most_(most), width_(width),
      values_(2 * layers * samples * most * width) {}

result<void> kv_cache::append(std::size_t time) {
  if (time > most_ - length_)
    return failure{"cache: " + std::to_string(time) + " more tokens after " +
                   std::to_string(length_) + " do not fit: it was reserved for " +
                   std::to_string(most_)};
  length_ += time;
  return {};
}

result<void> kv_cache::rollback(std::size_t length) {
  if (length > length_)
    return failure{"cache: it holds " + std::to_string(length_) + " tokens and cannot go back to " +
                   std::to_string(length)};
  length_ = length;
  return {};
}

result<void> kv_cache::reorder(std::span<const std::int64_t> from) {
  if (from.size() != samples_)
    return failure{"cache: an order of " + std::to_string(from.size()) + " for " +
                   std::to_string(samples_) + " sequences"};
  for (const auto row : from)
    if (row < 0 || static_cast<std::size_t>(row) >= samples_)
      return failure{"cache: there is no sequence " + std::to_string(row) + " of " +
                     std::to_string(samples_)};
  const auto row_size = 2 * most_ * width_;
  std::vector<float> layer(samples_ * row_size);
  for (std::size_t l = 0; l < layers_; ++l) {
    float* rows = keys(l, 0);
    std::copy_n(rows, layer.size(), layer.begin());
    for (std::size_t i = 0; i < samples_; ++i)
      std::copy_n(layer.begin() +
                      static_cast<std::ptrdiff_t>(static_cast<std::size_t>(from[i]) * row_size),
                  row_size, rows + i * row_size);
  }
  return {};
}

} // namespace shoal::learn
