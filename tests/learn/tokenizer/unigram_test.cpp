#include "kernels/base/rng.hpp"
#include "kernels/learn/tokenizer/byte_pairs.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"
#include "kernels/learn/tokenizer/unigram.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

std::vector<token_id> tokens_of(const token_model& model, const std::string& piece) {
  std::vector<token_id> out;
  model.encode({piece, {{0, piece.size()}}}, out);
  return out;
}

/// The best sum over all segmentations, by trying all of them.
double best_of_all(const std::map<std::string, double>& scores, const std::string& text,
                   double unknown) {
  if (text.empty()) return 0;
  double best = -1e300;
  for (std::size_t n = 1; n <= text.size(); ++n) {
    const auto found = scores.find(text.substr(0, n));
    const bool single = scores.contains(text.substr(0, 1));
    if (found == scores.end() && (n > 1 || single)) continue;
    const double score = found == scores.end() ? unknown : found->second;
    best = std::max(best, score + best_of_all(scores, text.substr(n), unknown));
  }
  return best;
}

} // namespace

TEST_CASE("unigram finds the best of all segmentations") {
  auto draw = stream(7, "unigram");
  for (int round = 0; round < 50; ++round) {
    unigram_description description;
    description.pieces = {{"<unk>", 0}};
    std::map<std::string, double> scores;
    double lowest = 0;
    for (int i = 0; i < 20; ++i) {
      std::string piece;
      for (auto n = 1 + draw.below(3); n > 0; --n) piece += static_cast<char>('a' + draw.below(3));
      if (scores.contains(piece)) continue;
      scores[piece] = draw.uniform(-8, -1);
      lowest = std::min(lowest, scores[piece]);
      description.pieces.emplace_back(piece, scores[piece]);
    }
    const auto model = unigram::make(description);
    REQUIRE(model.ok());
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (auto n = 1 + draw.below(10); n > 0; --n) text += static_cast<char>('a' + draw.below(4));
      CHECK(model->best_score(text) ==
            doctest::Approx(best_of_all(scores, text, lowest - 10)).epsilon(1e-12));
      double sum = 0;
      std::string joined;
      bool unknown = false;
      for (const auto token : tokens_of(*model, text)) {
        sum += model->score(token);
        joined += model->tokens().text(token);
        unknown = unknown || token == 0;
      }
      if (!unknown) {
        CHECK(joined == text);
        CHECK(sum == doctest::Approx(model->best_score(text)).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("unigram joins unknown characters and keeps the first of equals") {
  unigram_description description;
  description.pieces = {{"<unk>", 0}, {"a", -1}, {"b", -1}, {"ab", -2}, {"\u0995\u0996", -1}};
  auto model = unigram::make(description);
  REQUIRE(model.ok());
  using ids = std::vector<token_id>;
  // Both segmentations of 'ab' have the score -2. The whole one is found first.
  CHECK(tokens_of(*model, "ab") == ids{3});
  CHECK(tokens_of(*model, "axyb") == ids{1, 0, 2});
  CHECK(tokens_of(*model, "\u0995\u0996") == ids{4});
  CHECK(tokens_of(*model, "\u0995a") == ids{0, 1});
  CHECK(tokens_of(*model, "") == ids{});
  // With bytes as tokens, unknown characters are spelled.
  description.byte_fallback = true;
  CHECK(!unigram::make(description).ok());
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    description.pieces.emplace_back(text, -3);
  }
  model = unigram::make(description);
  REQUIRE(model.ok());
  CHECK(tokens_of(*model, "a\u0995") == ids{1, 5 + 0xe0, 5 + 0xa6, 5 + 0x95});
}

TEST_CASE("byte pairs join what was learnt first from the left") {
  byte_pairs_description description;
  description.tokens = {"a", "b", "c", "ab", "bc", "abc", "aa", "<unk>"};
  description.merges = {{"b", "c"}, {"a", "b"}, {"a", "bc"}, {"a", "a"}};
  auto model = byte_pairs::make(description);
  REQUIRE_MESSAGE(model.ok(), model.error());
  using ids = std::vector<token_id>;
  CHECK(tokens_of(*model, "abc") == ids{5});
  CHECK(tokens_of(*model, "abab") == ids{3, 3});
  CHECK(tokens_of(*model, "aaa") == ids{6, 0});
  CHECK(tokens_of(*model, "aabc") == ids{0, 5});
  CHECK(tokens_of(*model, "axa") == ids{6}); // unknown characters are left out
  description.unknown = "<unk>";
  model = byte_pairs::make(description);
  CHECK(tokens_of(*model, "axyb") == ids{0, 7, 7, 1});
  description.fuse_unknown = true;
  model = byte_pairs::make(description);
  CHECK(tokens_of(*model, "axyb") == ids{0, 7, 1});
  CHECK(tokens_of(*model, "ac") == ids{0, 2});
  description.merges = {};
  description.ignore_merges = true;
  model = byte_pairs::make(description);
  CHECK(tokens_of(*model, "abc") == ids{5});
}
