// kernels/learn/pictures/picture_set.
#include "kernels/learn/pictures/picture_set.hpp"
#include "kernels/learn/tokenizer/train_tokenizer.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
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

std::shared_ptr<const picture_coder> kmeans_of_three() {
  return *picture_coders().find("kmeans")->read({1, 2, 3}, {}, {0, 0, 0, 1, 1, 1, 0.5F, 0.25F, 0});
}

/// A small VQ-VAE for the same grid, which learnt one pass.
std::shared_ptr<const picture_coder> vq_vae_of_three() {
  const std::vector<picture> white(2, white_picture(2, 2));
  return *picture_coders().find("vq_vae")->train(white, {1, 3, 1, 1, 1}, {});
}

picture_set some_set(std::shared_ptr<const picture_coder> coder = kmeans_of_three()) {
  picture_set out;
  out.coder = std::move(coder);
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
  for (const auto& coder : {kmeans_of_three(), vq_vae_of_three()}) {
    const auto set = some_set(coder);
    REQUIRE(save(set, here.path / "s").ok());
    const auto again = load_picture_set(here.path / "s");
    REQUIRE(again.ok());
    CHECK(again->captions == set.captions);
    CHECK(again->codes == set.codes);
    CHECK(again->held_out == set.held_out);
    CHECK(again->coder->kind() == coder->kind());
    CHECK(again->coder->sizes() == coder->sizes());
    CHECK(again->coder->values() == coder->values());
    CHECK(again->coder->decode(set.codes[2]).rgb == coder->decode(set.codes[2]).rgb);
    CHECK(again->coder->encode(white_picture(2, 2)) == coder->encode(white_picture(2, 2)));
    CHECK(again->tokens_of("red heart", 40) == set.tokens_of("red heart", 40));
    CHECK(again->tokens_of("red heart", 40).back() == 0);
    CHECK(again->tokens_of("red heart", 2).size() == 2);
    CHECK(again->places(true).size() + again->places(false).size() == 8);
  }
}

TEST_CASE("files with k-means have the version and the bytes of those before other kinds") {
  const scratch_folder here;
  REQUIRE(save(some_set(), here.path / "s").ok());
  CHECK(contents_of(here.path / "s")[8] == 1);
  CHECK(text_of(some_set()).find("codebook") == std::string::npos);
  REQUIRE(save(some_set(vq_vae_of_three()), here.path / "v").ok());
  CHECK(contents_of(here.path / "v")[8] == 2);
}

TEST_CASE("a file whose codebook is of another kind or size is refused with its fault") {
  const auto whole = text_of(some_set(vq_vae_of_three()));
  REQUIRE(parse_picture_set(whole, "t").ok());
  const auto error_of = [&](const std::string& text) {
    const auto read = parse_picture_set(text, "t");
    REQUIRE(!read.ok());
    CHECK(read.error().find('\n') == std::string::npos);
    return read.error();
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    auto text = whole;
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    std::uint64_t size = 0;
    std::memcpy(&size, text.data(), sizeof size);
    size += to.size() - from.size();
    std::memcpy(text.data(), &size, sizeof size);
    return text;
  };
  const auto refused = [&](const std::string& from, const std::string& to, const char* why) {
    const auto error = error_of(changed(from, to));
    CHECK_MESSAGE(error.find(why) != std::string::npos, error);
  };
  refused("vq_vae", "vq_gan", "of the kind 'vq_gan'; this program has kmeans, vq_vae");
  refused("vq_vae", "kmeans", "its size does not agree with its header");
  refused("\"hidden\"", "\"hid\"", "its codebook has no size 'hidden'");
  refused("\"hidden\":96", "\"hidden\":0", "has the size 'hidden' 0, which is not from 1 to 1024");
  refused("\"hidden\":96", "\"hidden\":97", "its size does not agree with its header");
  refused("\"blocks\":2", "\"blocks\":-1", "has the size 'blocks' 18446744073709551615");
  refused("\"blocks\":2", "\"blocks\":\"2\"", "its header is no JSON of a set");
  refused("\"sizes\":{", "\"sizes\":7,\"s\":{", "its header is no JSON of a set");
  refused("\"side\":2", "\"side\":300", "its sizes make no sense");
  refused("\"patch\":1", "\"patch\":2049", "its sizes make no sense");
  refused("\"side\":2", "\"side\":256", "its size does not agree with its header");
  refused("\"patch\":1", "\"patch\":2", "its size does not agree with its header");
  refused("\"codes\":3", "\"codes\":2", "its size does not agree with its header");
  CHECK(error_of(whole + "x").find("its size does not agree") != std::string::npos);
  CHECK(error_of(whole + "1234").find("its size does not agree") != std::string::npos);
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), sizeof header);
  auto infinite = whole;
  infinite.replace(8 + header, 4, std::string("\0\0\x80\x7f", 4));
  CHECK(error_of(infinite).find("a value that is not finite") != std::string::npos);
  // Each cut and each changed byte of the header gives an error or a set, and no crash.
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 16)
    error_of(whole.substr(0, size));
  for (std::size_t at = 0; at < 8 + header; at += 3) {
    auto other = whole;
    other[at] = static_cast<char>(other[at] ^ 9);
    (void)parse_picture_set(other, "t");
  }
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
