// kernels/learn/pictures/picture_set.
#include "kernels/learn/pictures/picture_set.hpp"
#include "kernels/learn/tokenizer/train_tokenizer.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

const std::vector<std::string> some_captions{"waving hand: light skin tone",
                                             "waving hand: dark skin tone",
                                             "ear: light skin tone",
                                             "ear: dark skin tone",
                                             "nose: light skin tone",
                                             "nose: dark skin tone",
                                             "flag: Chad",
                                             "red heart"};

picture_set some_set() {
  picture_set out;
  out.book = {1, 2, {0, 0, 0, 1, 1, 1, 0.5F, 0.25F, 0}};
  out.captions = some_captions;
  for (std::size_t i = 0; i < out.captions.size(); ++i)
    out.codes.push_back({0, 1, 2, static_cast<token_id>(i % 3)});
  out.held_out = choose_held_out(out.captions, 0.4, 1);
  const auto pipeline = albert_pipeline(text_rules::general, true);
  word_counts words(pipeline);
  for (const auto& caption : out.captions) words.add(caption);
  unigram_training options;
  options.vocabulary = 28;
  REQUIRE(out.use_words(std::move(*train_tokenizer(words, pipeline, options))).ok());
  return out;
}

} // namespace

TEST_CASE("the parts of a held-out caption are both in captions that remain") {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const auto held = choose_held_out(some_captions, 0.5, seed);
    CHECK(std::accumulate(held.begin(), held.end(), 0) == 3);
    CHECK(held[6] == 0); // nobody else has 'Chad'
    CHECK(held[7] == 0);
    for (std::size_t pair = 0; pair < 6; pair += 2) CHECK(held[pair] + held[pair + 1] < 2);
    CHECK(held[0] + held[2] + held[4] < 3);
  }
  const std::vector<std::string> plain{"a", "b", "c", "d"};
  const auto held = choose_held_out(plain, 0.25, 1);
  CHECK(std::accumulate(held.begin(), held.end(), 0) == 1);
}

TEST_CASE("a prepared set survives its file") {
  const scratch_folder here;
  const auto set = some_set();
  REQUIRE(save(set, here.path / "s").ok());
  const auto again = load_picture_set(here.path / "s");
  REQUIRE(again.ok());
  CHECK(again->captions == set.captions);
  CHECK(again->codes == set.codes);
  CHECK(again->held_out == set.held_out);
  CHECK(again->book.entries == set.book.entries);
  CHECK(again->tokens_of("red heart", 40) == set.tokens_of("red heart", 40));
  CHECK(again->tokens_of("red heart", 40).back() == 0);
  CHECK(again->tokens_of("red heart", 2).size() == 2);
  CHECK(again->places(true).size() + again->places(false).size() == 8);
}

TEST_CASE("damaged and foreign files of pictures are refused") {
  const scratch_folder here;
  REQUIRE(save(some_set(), here.path / "s").ok());
  const auto whole = contents_of(here.path / "s");
  const auto error_of = [&](const std::string& text) {
    here.write("t", text);
    const auto read = load_picture_set(here.path / "t");
    REQUIRE(!read.ok());
    return read.error();
  };
  CHECK(error_of("something else, longer than a head").find("shoal images prepare") !=
        std::string::npos);
  auto newer = whole;
  newer[8] = 9;
  CHECK(error_of(newer).find("has version 9") != std::string::npos);
  for (const std::size_t size : {21, 60, 200})
    CHECK(error_of(whole.substr(0, size)).find("damaged") != std::string::npos);
  auto huge = whole;
  huge[16] = 127;
  CHECK(error_of(huge).find("more than 1 GiB") != std::string::npos);
}
