#include "kernels/learn/tokenizer/train_tokenizer.hpp"
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

TEST_CASE("words are counted with the characters after them") {
  const auto pipeline = albert_pipeline(text_rules::general, true);
  word_counts counts(pipeline);
  counts.add("Ab, ab  \n \nab ab");
  CHECK(counts.total() == 5); // no word of a mark alone for the empty line
  CHECK(counts.different() == 2);
  const auto words = counts.followed_words();
  REQUIRE(words.size() == 4);
  CHECK(words[0].text == U"," + std::u32string(1, follower(0x2581)));
  const std::u32string ab{0x2581, U'a', U'b'};
  CHECK(words[1].text == ab + follower(U'\n'));
  CHECK(words[1].count == 2);
  CHECK(words[2].text == ab + follower(U','));
  CHECK(words[3].text == ab + follower(0x2581));
  // The same character follows "xy" each time, so "xy" is no seed.
  auto options = small(7);
  options.followed_words = {{std::u32string(U"xy") + follower(U'z'), 9}, {U"xw", 1}};
  const auto trained = train_unigram({{U"xy", 9}, {U"xw", 1}}, options);
  CHECK(trained.error().starts_with("the texts give only 4 tokens"));
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
  const auto compared = [&](const unigram& ours, const std::vector<counted_word>& by) {
    outcome out;
    for (const auto& [piece, score] : published.pieces)
      out.equal += ours.tokens().find(piece) ? 1 : 0;
    out.ratio = total_score(ours, by) / total_score(*theirs, by);
    return out;
  };
  // A word that is always followed by a space is no seed of SentencePiece. Without followers it is.
  const auto of_words =
      compared(unigram::make(train_unigram(words, options).value()).value(), words);
  auto pipeline = albert_pipeline(text_rules::none, false);
  word_counts counted(pipeline);
  counted.add(contents_of(text));
  pipeline.splitters.resize(1); // SentencePiece cuts at spaces alone
  word_counts between_spaces(pipeline);
  between_spaces.add(contents_of(text));
  options.followed_words = between_spaces.followed_words();
  const auto followed =
      compared(unigram::make(train_unigram(words, options).value()).value(), words);
  // The defaults of the command.
  unigram_training defaults;
  defaults.vocabulary = 2002; // five special tokens instead of three
  defaults.character_coverage = 1;
  const auto command = train_tokenizer(counted, albert_pipeline(text_rules::none, false), defaults);
  REQUIRE(command.ok());
  const auto trained = compared(
      unigram::make(std::get<unigram_description>(command->model)).value(), counted.words());
  MESSAGE("pieces equal of 2000, and ratio of the total score: with followers "
          << followed.equal << ", " << followed.ratio << "; a tokenizer " << trained.equal << ", "
          << trained.ratio << "; words alone " << of_words.equal << ", " << of_words.ratio);
  CHECK(followed.equal >= 1970);
  CHECK(std::abs(followed.ratio - 1) <= 0.005);
  CHECK(trained.equal >= 1900);
  // SentencePiece left quotation marks in the words, so its pieces are worse for words without.
  CHECK(trained.ratio <= 1.005);
  CHECK(std::abs(of_words.ratio - 1) <= 0.005);
}
