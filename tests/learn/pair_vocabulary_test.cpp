// kernels/learn/pair_vocabulary_file: the real tokenizer of sahajBERT gives the official input of
// pairs, and of sentences that are split into words.
#include "kernels/learn/pair_corpus.hpp"
#include "kernels/learn/pair_vocabulary_file.hpp"
#include "kernels/learn/task_data.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;
using nlohmann::json;

TEST_CASE("pairs become the official input of sahajBERT") {
  SHOAL_NEEDS_DATA(file, "sahajbert_tokenizer/tokenizer.json");
  const auto vocabulary = load_pair_vocabulary(file, 32000).value();
  CHECK(vocabulary.start == 2);
  CHECK(vocabulary.separator == 3);
  CHECK(vocabulary.mask == 4);
  std::istringstream lines(contents_of(reference_file("oracle_vectors/sahajbert_pair.jsonl")));
  std::size_t seen = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto wanted = json::parse(line);
    const auto sample =
        masked_sample({wanted.at("a"), wanted.at("b"), 0}, seen++, vocabulary, {512, 0, 1});
    CHECK(sample.tokens == wanted.at("ids").get<std::vector<token_id>>());
    for (std::size_t t = 0; t < sample.tokens.size(); ++t)
      CHECK((t < sample.first ? 0 : 1) == wanted.at("type_ids").at(t));
  }
  CHECK(seen >= 20);
}

TEST_CASE("words become the official input of sahajBERT with the label at their first token") {
  SHOAL_NEEDS_DATA(file, "sahajbert_tokenizer/tokenizer.json");
  const auto vocabulary = load_pair_vocabulary(file, 32000).value();
  std::istringstream lines(contents_of(reference_file("oracle_vectors/sahajbert_words.jsonl")));
  std::size_t seen = 0;
  const std::vector<std::string> labels{"O"};
  for (std::string line; std::getline(lines, line); ++seen) {
    const auto wanted = json::parse(line);
    labelled_text text;
    text.words = wanted.at("words").get<std::vector<std::string>>();
    text.tags.assign(text.words.size(), "O");
    const auto sample =
        samples_of(std::vector{text}, task_kind::ner, labels, vocabulary, 512).value().front();
    CHECK(sample.tokens == wanted.at("ids").get<std::vector<token_id>>());
    const auto& words = wanted.at("word_ids");
    for (std::size_t t = 1; t < words.size(); ++t) {
      const bool first = !words[t].is_null() && words[t] != words[t - 1];
      CHECK(sample.labels[t] == (first ? 0 : albert_sample::no_label));
    }
  }
  CHECK(seen >= 40);
}

TEST_CASE("a vocabulary that does not fit the model is refused") {
  CHECK(load_pair_vocabulary("", 261)->codec->vocabulary() == 261);
  CHECK(load_pair_vocabulary("", 260).error() ==
        "tokenizer: bytes have 261 tokens, and the model has 260; set workload.vocabulary to at "
        "least that");
  CHECK_FALSE(load_pair_vocabulary("/no/such/tokenizer.json", 300).ok());
}

TEST_CASE("unigrams of the Bengali literature have the measured cross-entropy") {
  SHOAL_NEEDS_DATA(file, "sahajbert_tokenizer/tokenizer.json");
  SHOAL_NIGHTLY();
  pair_options options;
  options.masking.length = 128;
  options.sentence_ends = "\u0964?!";
  options.held_out_most = 1000;
  const std::vector<text_source> sources{
      {{(reference_data() / "bn_literature_pd/*.txt").string()}, 1}};
  const auto corpus =
      pair_corpus::load(sources, load_pair_vocabulary(file, 32000).value(), options).value();
  MESSAGE("trained on " << corpus.train_tokens() << " tokens, unigram loss "
                        << corpus.unigram_loss());
  // 7.111 nats at the end of all works; here whole works are held out.
  CHECK(std::abs(corpus.unigram_loss() - 7.111) < 0.7);
}
