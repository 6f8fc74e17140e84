// kernels/learn/sentences, masked_pair and pair_corpus: the data path of ALBERT's pre-training.
// Each sample is a function of the seed and its index.
#include "kernels/learn/pair_corpus.hpp"
#include "kernels/learn/sentences.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

using texts = std::vector<std::string>;

/// Documents of numbered sentences: 'd3 sentence 5 a.'
texts numbered(const std::string& name, int documents, int sentences) {
  texts out;
  for (int d = 0; d < documents; ++d) {
    std::string text;
    for (int s = 0; s < sentences; ++s)
      text += name + std::to_string(d) + " has sentence " + std::to_string(s) + " now.\n";
    out.push_back(text);
  }
  return out;
}

pair_options options_of(std::int64_t length) {
  pair_options out;
  out.masking.length = length;
  return out;
}

} // namespace

TEST_CASE("sentences end at their marks and at empty lines") {
  CHECK(split_sentences("One is 3.5. Two?  Three\nlines!\n\nA heading\n\n", ".?!") ==
        texts{"One is 3.5.", "Two?", "Three lines!", "A heading"});
  // The danda needs no white space behind it. Here '.' ends nothing, as after an abbreviation.
  CHECK(split_sentences("\u09a1. \u0995\u0964\u0996 \u0997\u0964", "\u0964") ==
        texts{"\u09a1. \u0995\u0964", "\u0996 \u0997\u0964"});
  CHECK(split_sentences(" \n\t", ".").empty());
  CHECK(split_sentences("", ".").empty());
  CHECK(split_sentences("\xff\xfe. x", ".") == texts{"\xff\xfe.", "x"});
  CHECK(cut_utf8("a\u0995b", 4) == "a\u0995");
  CHECK(cut_utf8("a\u0995b", 3) == "a");
  CHECK(cut_utf8("abc", 9) == "abc");
}

TEST_CASE("masking is a function of the seed and the index") {
  const auto bytes = byte_pair_vocabulary();
  CHECK(bytes.tokens == 261);
  const segment_pair pair{std::string(300, 'a'), std::string(300, 'b'), 1};
  const masking_options options{512, 0.15, 7};
  const auto one = masked_sample(pair, 3, bytes, options);
  CHECK(one.tokens == masked_sample(pair, 3, bytes, options).tokens);
  CHECK(one.tokens != masked_sample(pair, 4, bytes, options).tokens);
  CHECK(one.tokens != masked_sample(pair, 3, bytes, {512, 0.15, 8}).tokens);
  CHECK(one.order == 1);
  // The longer segment is cut first, so both have half of the room for text.
  REQUIRE(one.tokens.size() == 512);
  CHECK(one.first == 2 + 255);
  CHECK(one.tokens.front() == 2);
  CHECK(one.tokens[one.first - 1] == 3);
  CHECK(one.tokens.back() == 3);

  // The shares of masking over many samples: 15 %, and of these 80, 10 and 10 %.
  double text = 0, labels = 0, masked = 0, same = 0;
  std::set<token_id> drawn;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const auto sample = masked_sample(pair, i, bytes, options);
    text += 509;
    for (std::size_t t = 0; t < sample.tokens.size(); ++t) {
      const auto label = sample.labels[t], token = sample.tokens[t];
      const bool special = t == 0 || t + 1 == sample.first || t + 1 == sample.tokens.size();
      if (label == albert_sample::no_label) {
        CHECK(token == (t == 0 ? 2 : special ? 3 : t < sample.first ? 5 + 'a' : 5 + 'b'));
        continue;
      }
      CHECK_FALSE(special);
      CHECK(label == (t < sample.first ? 5 + 'a' : 5 + 'b'));
      ++labels;
      masked += token == bytes.mask ? 1 : 0;
      same += token == label ? 1 : 0;
      drawn.insert(token);
    }
  }
  const auto near = [](double found, double share, double of) {
    return std::abs(found - share * of) < 4 * std::sqrt(of * share * (1 - share));
  };
  CHECK(near(labels, 0.15, text));
  CHECK(near(masked, 0.8 + 0.1 / 261, labels));
  CHECK(near(same, 0.1 + 0.1 / 261, labels));
  CHECK(drawn.size() == 261); // special tokens, too
}

TEST_CASE("peers make the samples that the shard would have made") {
  auto options = options_of(64);
  const auto corpus =
      pair_corpus::from_documents({{"a", numbered("a", 9, 12)}}, byte_pair_vocabulary(), options)
          .value();
  const auto text = corpus.text_format();
  for (std::uint64_t i = 0; i < 50; ++i) {
    std::vector<std::byte> streamed(text.bytes());
    text.write(corpus.pair(i), i, streamed);
    REQUIRE(text.check(streamed).ok());
    const auto [pair, index] = text.read(streamed);
    const auto there = masked_sample(pair, index, corpus.vocabulary(), options.masking);
    const auto here = corpus.sample(i);
    CHECK(there.tokens == here.tokens);
    CHECK(there.labels == here.labels);
    CHECK(there.order == here.order);
  }
  std::vector<std::byte> wrong(text.bytes());
  wrong[9] = std::byte{255};
  CHECK(text.check(wrong).error() ==
        "samples: number 0 says that it has 65280 and 0 bytes of text in the order 0; it has room "
        "for 768, and the order is 0 or 1");
}

TEST_CASE("segments are consecutive text of one document, swapped half of the time") {
  const auto corpus = pair_corpus::from_documents({{"a", numbered("a", 40, 30)}},
                                                  byte_pair_vocabulary(), options_of(128))
                          .value();
  double swapped = 0;
  std::set<std::pair<std::string, std::string>> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto pair = corpus.pair(i);
    swapped += static_cast<double>(pair.order);
    const auto& before = pair.order == 1 ? pair.second : pair.first;
    const auto& after = pair.order == 1 ? pair.first : pair.second;
    const auto word = [](const std::string& text, std::size_t at) {
      return std::stoi(text.substr(text.find("sentence ", at) + 9));
    };
    const auto name = before.substr(0, before.find(' '));
    CHECK(after.starts_with(name + " "));
    CHECK(before.find(name) == 0);
    CHECK(word(before, before.rfind(name)) + 1 == word(after, 0));
    seen.emplace(pair.first, pair.second);
  }
  CHECK(swapped == doctest::Approx(500).epsilon(0.15));
  CHECK(seen.size() > 300);
}

TEST_CASE("sources come by their weights and each chunk once in a pass") {
  auto options = options_of(64);
  const auto corpus = pair_corpus::from_documents({{"wiki", numbered("w", 20, 40), 0.23},
                                                   {"oscar", numbered("o", 20, 40), 0.77}},
                                                  byte_pair_vocabulary(), options)
                          .value();
  std::map<std::size_t, std::vector<std::uint64_t>> of;
  for (std::uint64_t i = 0; i < 4 * pair_corpus::run_of_sources; ++i) {
    const auto at = corpus.place_of(i);
    of[at.source].push_back(at.chunk);
  }
  CHECK(of[0].size() == 4 * 236); // 0.23 of 1024 is 235.52
  CHECK(of[1].size() == 4 * 788);
  for (std::size_t s = 0; s < 2; ++s) {
    const auto count = corpus.chunks(s);
    REQUIRE(of[s].size() >= count);
    std::set<std::uint64_t> pass;
    // The samples of a run are a permutation, so a pass ends at most a run too late.
    for (const auto chunk : of[s]) pass.insert(chunk);
    CHECK(pass.size() == count);
    std::map<std::uint64_t, int> times;
    for (const auto chunk : of[s]) ++times[chunk];
    const auto [least, most] = std::minmax_element(
        times.begin(), times.end(), [](auto& a, auto& b) { return a.second < b.second; });
    CHECK(most->second - least->second <= 2);
  }
}

TEST_CASE("whole documents are held out and never trained on") {
  auto options = options_of(64);
  options.holdout = 0.25;
  options.held_out_most = 1000;
  const auto corpus =
      pair_corpus::from_documents({{"a", numbered("a", 24, 12)}}, byte_pair_vocabulary(), options)
          .value();
  const auto document = [](const std::string& text) { return text.substr(0, text.find(' ')); };
  std::set<std::string> trained, held;
  for (std::uint64_t i = 0; i < 2000; ++i) trained.insert(document(corpus.pair(i).first));
  CHECK(trained.size() == 18);
  const auto samples = corpus.held_out_samples();
  const auto format = corpus.sample_format();
  REQUIRE(format.check(samples).ok());
  CHECK(samples.size() == corpus.held_out_count() * format.bytes());
  for (std::size_t at = 0; at < samples.size(); at += format.bytes()) {
    auto sample = format.read(std::span(samples).subspan(at, format.bytes()));
    for (std::size_t t = 0; t < sample.tokens.size(); ++t)
      if (sample.labels[t] != albert_sample::no_label) sample.tokens[t] = sample.labels[t];
    held.insert(document(corpus.vocabulary().codec->decode(sample.tokens)));
  }
  CHECK(held.size() == 6);
  for (const auto& name : held) CHECK(trained.count(name) == 0);
}

TEST_CASE("the unigram loss is the cross-entropy of frequencies") {
  auto options = options_of(64);
  options.held_out_most = 1000;
  // All text is 'ab' in equal parts, with spaces and full stops: 4 of 261 tokens occur.
  texts documents;
  for (int d = 0; d < 40; ++d) {
    std::string text;
    for (int s = 0; s < 30; ++s) text += "abababababababa. ";
    documents.push_back(text + std::string(static_cast<std::size_t>(d), 'a') + ".");
  }
  const auto corpus =
      pair_corpus::from_documents({{"a", documents}}, byte_pair_vocabulary(), options).value();
  // 8 a, 7 b and 1 full stop in each sentence of 16; joined by spaces, which no sentence has.
  CHECK(corpus.unigram_loss() > 0.85);
  CHECK(corpus.unigram_loss() < 1.7);
  CHECK(corpus.train_tokens() > 15000);
}

TEST_CASE("texts without two documents or two sentences are refused") {
  const auto of = [](const texts& documents, double weight = 1) {
    return pair_corpus::from_documents({{"poem", documents, weight}}, byte_pair_vocabulary(),
                                       options_of(64));
  };
  CHECK(of({"One. Two."}).error() ==
        "data: 'poem' has no document with two sentences to hold out; it has 1 documents: give "
        "more text, or make documents smaller");
  CHECK(of({"One.", "Two."})
            .error()
            .starts_with("data: 'poem' has no document with two sentences to train on"));
  CHECK(of({"One. Two.", "Three. Four."}, 0).error() ==
        "data: the weight of 'poem' must be a positive number");
  CHECK(of({"One. Two.", "Three. Four."}).ok());
}
