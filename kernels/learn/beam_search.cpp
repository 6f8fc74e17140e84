#include "kernels/learn/beam_search.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace shoal::learn {

namespace {

struct candidate {
  double score = 0;
  std::size_t beam = 0, token = 0;
  bool operator<(const candidate& other) const noexcept {
    if (score != other.score) return score > other.score;
    return std::pair{beam, token} < std::pair{other.beam, other.token};
  }
};

} // namespace

beam_search::beam_search(std::size_t beams) : texts_(beams), scores_(beams) {
  SHOAL_CHECK(beams > 0, "a search has a beam");
}

void beam_search::step(std::span<const float> logits) {
  const auto beams = texts_.size(), words = logits.size() / beams;
  SHOAL_CHECK(logits.size() == beams * words && words >= beams, "each beam has its logits");
  std::vector<candidate> all;
  for (std::size_t b = 0; b < (begun_ ? beams : 1); ++b) {
    const auto row = logits.subspan(b * words, words);
    const auto value = [&](std::size_t i) {
      return std::isnan(row[i]) ? -std::numeric_limits<double>::infinity()
                                : static_cast<double>(row[i]);
    };
    double most = value(0), sum = 0;
    for (std::size_t i = 1; i < words; ++i) most = std::max(most, value(i));
    for (std::size_t i = 0; i < words; ++i) sum += std::exp(value(i) - most);
    const double base = scores_[b] - most - std::log(sum);
    for (std::size_t i = 0; i < words; ++i) all.push_back({base + value(i), b, i});
  }
  begun_ = true;
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(beams), all.end());
  std::vector<std::vector<token_id>> texts;
  parents_.clear();
  last_.clear();
  for (std::size_t i = 0; i < beams; ++i) {
    texts.push_back(texts_[all[i].beam]);
    last_.push_back(static_cast<token_id>(all[i].token));
    texts.back().push_back(last_.back());
    parents_.push_back(static_cast<std::int64_t>(all[i].beam));
    scores_[i] = all[i].score;
  }
  texts_ = std::move(texts);
}

} // namespace shoal::learn
