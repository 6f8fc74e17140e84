#include "kernels/learn/pictures/moving_codes.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/pictures/nearest_entry.hpp"

#include <algorithm>
#include <utility>

namespace shoal::learn {

moving_codes::moving_codes(std::vector<float> entries, std::size_t width, double decay,
                           double dead_below)
    : width_(width), decay_(decay), dead_below_(dead_below), entries_(std::move(entries)),
      counts_(entries_.size() / width, 1.0), sums_(entries_.begin(), entries_.end()) {}

void moving_codes::update(std::span<const float> vectors, std::span<const token_id> codes,
                          rng& random) {
  SHOAL_CHECK(vectors.size() == codes.size() * width_, "a code for each vector");
  for (auto& count : counts_) count *= decay_;
  for (auto& sum : sums_) sum *= decay_;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto k = static_cast<std::size_t>(codes[i]);
    counts_[k] += 1 - decay_;
    for (std::size_t j = 0; j < width_; ++j)
      sums_[k * width_ + j] += (1 - decay_) * static_cast<double>(vectors[i * width_ + j]);
  }
  for (std::size_t k = 0; k < counts_.size(); ++k)
    for (std::size_t j = 0; j < width_; ++j)
      entries_[k * width_ + j] = static_cast<float>(sums_[k * width_ + j] / counts_[k]);
  reseed(vectors, codes, random);
}

void moving_codes::reseed(std::span<const float> vectors, std::span<const token_id> codes,
                          rng& random) {
  std::vector<double> upto; // cumulative, made for the first dead entry
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    if (counts_[k] >= dead_below_) continue;
    if (upto.empty())
      for (std::size_t i = 0; i < codes.size(); ++i)
        upto.push_back((upto.empty() ? 0 : upto.back()) +
                       squared_distance(
                           vectors.data() + i * width_,
                           entries_.data() + static_cast<std::size_t>(codes[i]) * width_, width_));
    const auto place = std::upper_bound(upto.begin(), upto.end(), random.uniform() * upto.back());
    const auto i = std::min(static_cast<std::size_t>(place - upto.begin()), codes.size() - 1);
    std::copy_n(vectors.data() + i * width_, width_, entries_.data() + k * width_);
    std::copy_n(vectors.data() + i * width_, width_, sums_.data() + k * width_);
    counts_[k] = 1;
    ++reseeded_;
  }
}

} // namespace shoal::learn
