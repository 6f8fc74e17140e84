#include "kernels/learn/tokenizer/train_unigram.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

/// The words of a text as SentencePiece cuts them, each with its mark.
std::vector<counted_word> words_of(const std::string& text) {
  std::map<std::u32string, std::uint64_t> counts;
  std::u32string word;
  const auto end = [&] {
    if (!word.empty()) ++counts[word];
    word.clear();
  };
  for (const auto c : unicode::decoded(text)) {
    if (c == ' ' || c == '\n') {
      end();
      continue;
    }
    if (word.empty()) word.push_back(0x2581);
    word.push_back(c);
  }
  end();
  std::vector<counted_word> out;
  for (auto& [each, count] : counts) out.push_back({each, count});
  return out;
}

/// The lines of a text as SentencePiece has them, with a mark in front of each word.
std::vector<counted_word> lines_of(const std::string& text) {
  std::vector<counted_word> out(1, {U"", 1});
  bool inside = false;
  for (const auto c : unicode::decoded(text)) {
    if (c == '\n' && !out.back().text.empty()) out.push_back({U"", 1});
    if (c != ' ' && c != '\n') {
      if (!inside) out.back().text.push_back(0x2581);
      out.back().text.push_back(c);
    }
    inside = c != ' ' && c != '\n';
  }
  if (out.back().text.empty()) out.pop_back();
  return out;
}

unigram_training small(std::size_t vocabulary) {
  unigram_training out;
  out.vocabulary = vocabulary;
  out.special = {"<unk>"};
  out.unknown = 0;
  out.character_coverage = 1;
  return out;
}

/// The score of all words, as often as they occur.
double total_score(const unigram& model, const std::vector<counted_word>& words) {
  double out = 0;
  for (const auto& each : words)
    out += static_cast<double>(each.count) * model.best_score(unicode::encoded(each.text));
  return out;
}

} // namespace

TEST_CASE("digamma agrees with the tables and with its recurrence") {
  // Abramowitz and Stegun, table 6.1.
  CHECK(digamma(1) == doctest::Approx(-0.57721566490153286).epsilon(1e-12));
  CHECK(digamma(1.5) == doctest::Approx(0.03648997397857652).epsilon(1e-10));
  CHECK(digamma(2) == doctest::Approx(0.42278433509846714).epsilon(1e-12));
  CHECK(digamma(0.5) == doctest::Approx(-1.9635100260214235).epsilon(1e-12));
  for (const double x : {0.7, 3.3, 11.0, 1e6})
    CHECK(digamma(x + 1) - digamma(x) == doctest::Approx(1 / x).epsilon(1e-9));
}

TEST_CASE("repeated substrings are those that a search of all pairs finds") {
  const std::vector<counted_word> words{
      {U"banana", 2}, {U"ananas", 1}, {U"nan", 5}, {U"b", 3}, {U"xyxyxyxy", 1}};
  for (const std::size_t longest : {2u, 3u, 5u, 16u}) {
    // By definition: the count, and at least two different followers. A word's end is always one.
    std::map<std::u32string, std::pair<std::uint64_t, std::set<std::uint64_t>>> all;
    std::uint64_t end = 0x110000;
    for (const auto& word : words)
      for (std::size_t i = 0; i < word.text.size(); ++i)
        for (std::size_t n = 2; n <= longest && i + n <= word.text.size(); ++n) {
          auto& [count, followers] = all[word.text.substr(i, n)];
          count += word.count;
          followers.insert(i + n < word.text.size() ? word.text[i + n] : ++end);
          if (i + n == word.text.size() && word.count > 1) followers.insert(++end);
        }
    std::map<std::u32string, std::uint64_t> expected, found;
    for (const auto& [text, of] : all)
      if (of.second.size() > 1) expected[text] = of.first;
    for (const auto& each : repeated_substrings(words, longest))
      CHECK(
          found.emplace(words[each.word].text.substr(each.begin, each.length), each.count).second);
    CHECK(found == expected);
  }
}

TEST_CASE("a trained vocabulary has the characters and the words that repeat") {
  std::vector<counted_word> words{{U"_the", 500}, {U"_then", 90}, {U"_other", 60}, {U"_x", 1}};
  const auto trained = train_unigram(words, small(12));
  REQUIRE_MESSAGE(trained.ok(), trained.error());
  CHECK(trained->pieces.size() == 12);
  CHECK(trained->pieces.front().first == "<unk>");
  std::map<std::string, double> scores(trained->pieces.begin(), trained->pieces.end());
  CHECK(scores.contains("_the"));
  for (const std::string c : {"_", "t", "h", "e", "n", "o", "r", "x"}) CHECK(scores.contains(c));
  for (std::size_t i = 2; i < trained->pieces.size(); ++i)
    CHECK(trained->pieces[i - 1].second >= trained->pieces[i].second);
  // Equal words give equal bits, in any order.
  std::reverse(words.begin(), words.end());
  CHECK(*train_unigram(words, small(12)) == *trained);
}

TEST_CASE("a vocabulary that the words cannot fill is refused with what is possible") {
  const std::vector<counted_word> words{{U"abc", 2}, {U"abd", 3}};
  CHECK(train_unigram({}, small(10)).error() == "the texts have no words");
  CHECK(train_unigram(words, small(4)).error() ==
        "a vocabulary of 4 tokens is too small: there are 4 characters and 1 special tokens; ask "
        "for at least 5, or cover fewer characters");
  const auto large = train_unigram(words, small(100));
  CHECK(large.error().starts_with("the texts give only "));
}

TEST_CASE("rare characters become unknown and long words do not overflow") {
  std::vector<counted_word> words{{U"_ab", 10000}, {U"_abz", 1}, {std::u32string(5000, U'a'), 1}};
  auto options = small(5);
  options.character_coverage = 0.9999;
  const auto trained = train_unigram(words, options);
  REQUIRE_MESSAGE(trained.ok(), trained.error());
  for (const auto& [piece, score] : trained->pieces) {
    CHECK(piece.find('z') == std::string::npos);
    CHECK(std::isfinite(score));
  }
}

TEST_CASE("a vocabulary trained on Bengali is that of SentencePiece, nearly") {
  SHOAL_NEEDS_DATA(text, "bn_literature_pd/RabindranathTagore_Prose_GalpaGuchchha_1.txt");
  SHOAL_NEEDS_DATA(reference, "oracle_vectors/spm_debian/galpa_identity_2000.vocab");
  const auto words = words_of(contents_of(text));
  unigram_description published;
  std::istringstream in(contents_of(reference));
  for (std::string line; std::getline(in, line);) {
    const auto tab = line.find('\t');
    REQUIRE(tab != std::string::npos);
    published.pieces.emplace_back(line.substr(0, tab), std::stod(line.substr(tab + 1)));
  }
  CHECK(published.pieces.size() == 2000);
  const auto theirs = unigram::make(published);
  REQUIRE(theirs.ok());

  unigram_training options;
  options.vocabulary = 2000;
  options.special = {"<unk>", "<s>", "</s>"};
  options.unknown = 0;
  options.character_coverage = 1;
  options.one_script = true;
  struct outcome {
    std::size_t equal = 0;
    double ratio = 0; // total scores of all words
  };
  const auto compared = [&] {
    const auto trained = train_unigram(words, options).value();
    const auto ours = unigram::make(trained).value();
    outcome out;
    for (const auto& [piece, score] : published.pieces)
      out.equal += ours.tokens().find(piece) ? 1 : 0;
    out.ratio = total_score(ours, words) / total_score(*theirs, words);
    return out;
  };
  // Substrings of words alone are another choice: SentencePiece takes those of whole lines.
  const auto of_words = compared();
  options.passages = lines_of(contents_of(text));
  const auto of_lines = compared();
  MESSAGE("pieces equal, and ratio of the total score: with substrings of lines "
          << of_lines.equal << " of 2000, " << of_lines.ratio << "; of words " << of_words.equal
          << ", " << of_words.ratio);
  CHECK(of_lines.equal >= 1900);
  CHECK(of_lines.ratio == doctest::Approx(1).epsilon(0.005));
  CHECK(of_words.equal >= 1650);
  CHECK(of_words.ratio == doctest::Approx(1).epsilon(0.005));
}
