#include "kernels/base/rng.hpp"
#include "kernels/learn/beam_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

using namespace shoal;
using namespace shoal::learn;

namespace {

constexpr std::size_t words = 4;

/// Logits after a text, drawn for each text.
std::vector<float> logits_after(const std::vector<token_id>& text, std::uint64_t seed) {
  std::uint64_t name = 1;
  for (const auto token : text) name = name * 5 + static_cast<std::uint64_t>(token) + 1;
  auto random = stream(seed, "logits", name);
  std::vector<float> out(words);
  for (auto& each : out) each = static_cast<float>(random.normal());
  return out;
}

double log_probability(const std::vector<token_id>& text, std::uint64_t seed) {
  double out = 0;
  std::vector<token_id> before;
  for (const auto token : text) {
    const auto logits = logits_after(before, seed);
    double sum = 0;
    for (const float each : logits) sum += std::exp(static_cast<double>(each));
    out += static_cast<double>(logits[static_cast<std::size_t>(token)]) - std::log(sum);
    before.push_back(token);
  }
  return out;
}

} // namespace

TEST_CASE("beams as many as there are texts find the likeliest text of all") {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    // Four beams keep all texts of one token, so none of two tokens is missed.
    double best = -1e9;
    std::vector<token_id> best_text;
    for (token_id a = 0; a < 4; ++a)
      for (token_id b = 0; b < 4; ++b) {
        const double score = log_probability({a, b}, seed);
        if (score > best) {
          best = score;
          best_text = {a, b};
        }
      }
    beam_search search(4);
    std::vector<std::vector<token_id>> texts(4);
    for (int step = 0; step < 2; ++step) {
      std::vector<float> logits;
      for (const auto& text : texts) {
        const auto row = logits_after(text, seed);
        logits.insert(logits.end(), row.begin(), row.end());
      }
      search.step(logits);
      std::vector<std::vector<token_id>> next;
      for (std::size_t i = 0; i < 4; ++i) {
        next.push_back(texts[static_cast<std::size_t>(search.parents()[i])]);
        next.back().push_back(search.last_tokens()[i]);
      }
      texts = std::move(next);
    }
    CHECK(search.best() == best_text);
    CHECK(search.best_score() == doctest::Approx(best));
    CHECK(texts.front() == best_text);
  }
}

TEST_CASE("one beam takes the likeliest token and the first of equals") {
  beam_search search(1);
  search.step(std::vector<float>{1, 3, 3, 2});
  search.step(std::vector<float>{NAN, 0, 0, 0});
  CHECK(search.best() == std::vector<token_id>{1, 1});
  CHECK(search.parents() == std::vector<std::int64_t>{0});
}

TEST_CASE("the first step gives different beams") {
  beam_search search(3);
  std::vector<float> logits;
  for (int i = 0; i < 3; ++i) logits.insert(logits.end(), {0.F, 1.F, 2.F, 3.F});
  search.step(logits);
  CHECK(search.last_tokens() == std::vector<token_id>{3, 2, 1});
}
