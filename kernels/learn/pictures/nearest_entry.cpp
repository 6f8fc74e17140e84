#include "kernels/learn/pictures/nearest_entry.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <limits>

namespace shoal::learn {

nearest_entry::nearest_entry(std::span<const float> entries, std::size_t width)
    : width_(width), count_(entries.size() / width), columns_(entries.size()), half_(count_),
      scores_(count_) {
  for (std::size_t k = 0; k < count_; ++k)
    for (std::size_t i = 0; i < width; ++i) {
      const float value = entries[k * width + i];
      columns_[i * count_ + k] = value;
      half_[k] += value * value / 2;
    }
}

std::size_t nearest_entry::find(const float* x) {
  std::copy(half_.begin(), half_.end(), scores_.begin());
  float* scores = scores_.data();
  for (std::size_t i = 0; i < width_; ++i) {
    const float value = x[i];
    const float* column = columns_.data() + i * count_;
    for (std::size_t k = 0; k < count_; ++k) scores[k] -= value * column[k];
  }
  return static_cast<std::size_t>(std::min_element(scores_.begin(), scores_.end()) -
                                  scores_.begin());
}

std::vector<token_id> codes_of(std::span<const float> vectors, std::span<const float> entries,
                               std::size_t width) {
  nearest_entry nearest(entries, width);
  std::vector<token_id> out;
  for (std::size_t at = 0; at < vectors.size(); at += width)
    out.push_back(static_cast<token_id>(nearest.find(vectors.data() + at)));
  return out;
}

std::vector<float> entries_of(std::span<const token_id> codes, std::span<const float> entries,
                              std::size_t width) {
  std::vector<float> out;
  out.reserve(codes.size() * width);
  for (const auto code : codes) {
    SHOAL_CHECK(code >= 0 && static_cast<std::size_t>(code) < entries.size() / width,
                "codes are in the book");
    const auto one = entries.subspan(static_cast<std::size_t>(code) * width, width);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

double squared_distance(const float* a, const float* b, std::size_t width) {
  float sum = 0;
  for (std::size_t i = 0; i < width; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

std::vector<float> spread_entries(std::span<const float> vectors, std::span<const double> weights,
                                  std::size_t width, std::size_t count, rng& random) {
  std::vector<float> out;
  std::vector<double> far(weights.size(), std::numeric_limits<double>::infinity());
  std::size_t chosen = random.below(weights.size());
  for (;;) {
    const auto* entry = vectors.data() + chosen * width;
    out.insert(out.end(), entry, entry + width);
    if (out.size() == count * width) return out;
    double total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      far[i] = std::min(far[i], squared_distance(vectors.data() + i * width, entry, width));
      total += weights[i] * far[i];
    }
    double left = random.uniform() * total;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (far[i] <= 0) continue;
      chosen = i; // the last one, should rounding leave a rest
      if ((left -= weights[i] * far[i]) < 0) break;
    }
  }
}

} // namespace shoal::learn
