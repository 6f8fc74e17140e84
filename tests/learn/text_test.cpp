// kernels/learn/text and bigram: each pass has every window once, no held-out byte is trained on,
// and equal files count once.
#include "kernels/base/rng.hpp"
#include "kernels/learn/bigram.hpp"
#include "kernels/learn/text.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

using namespace shoal;
using namespace shoal::learn;
namespace fs = std::filesystem;

namespace {

/// A file in which each byte gives its own place, modulo 251.
text_file numbered(const std::string& name, std::size_t size) {
  text_file file{.name = name};
  for (std::size_t i = 0; i < size; ++i) file.bytes.push_back(static_cast<std::uint8_t>(i % 251));
  return file;
}

text_corpus three_files(std::int64_t context = 16, std::uint64_t seed = 1) {
  return text_corpus::from_files({numbered("b", 1000), numbered("a", 333), numbered("tiny", 7)},
                                 {.context = context, .seed = seed})
      .value();
}

std::string error_of(const std::vector<std::string>& patterns,
                     const text_options& options = {.context = 4}) {
  const auto loaded = text_corpus::load(patterns, options);
  return loaded.ok() ? "" : loaded.error();
}

} // namespace

TEST_CASE("permute is a bijection for every size and depends on the key") {
  for (std::uint64_t n : {1, 2, 3, 7, 64, 65, 1000, 4097}) {
    std::set<std::uint64_t> images;
    for (std::uint64_t i = 0; i < n; ++i) {
      images.insert(permute(i, n, 42));
      REQUIRE(permute(i, n, 42) < n);
    }
    CHECK(images.size() == n);
  }
  std::size_t same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) same += permute(i, 1000, 1) == permute(i, 1000, 2);
  CHECK(same < 20);
}

TEST_CASE("each pass holds every window once, without overlap and inside the training bytes") {
  const auto corpus = three_files();
  for (std::uint64_t pass = 0; pass < 3; ++pass) {
    std::set<std::uint64_t> windows;
    std::set<std::pair<std::size_t, std::size_t>> predicted;
    for (std::uint64_t i = pass * corpus.windows(); i < (pass + 1) * corpus.windows(); ++i) {
      const auto at = corpus.place_of(i);
      CHECK(at.pass == pass);
      CHECK(windows.insert(at.window).second);
      REQUIRE(at.offset + corpus.sample_bytes() <= corpus.files()[at.file].train_bytes);
      for (std::size_t j = 1; j < corpus.sample_bytes(); ++j)
        CHECK(predicted.insert({at.file, at.offset + j}).second);
      const auto bytes = corpus.sample(i);
      CHECK(std::to_integer<std::uint8_t>(bytes.front()) ==
            corpus.files()[at.file].bytes[at.offset]);
      CHECK(std::to_integer<std::uint8_t>(bytes.back()) ==
            corpus.files()[at.file].bytes[at.offset + 16]);
    }
    CHECK(windows.size() == corpus.windows());
  }
}

TEST_CASE("passes differ in order and in the cuts of the windows") {
  const auto corpus = three_files();
  std::set<std::size_t> offsets_of_first;
  std::size_t same_order = 0;
  for (std::uint64_t i = 0; i < corpus.windows(); ++i)
    same_order += corpus.place_of(i).window == corpus.place_of(i + corpus.windows()).window;
  CHECK(same_order < corpus.windows() / 2);
  for (std::uint64_t i = 0; i < 20 * corpus.windows(); ++i)
    if (const auto at = corpus.place_of(i); at.window == 0) offsets_of_first.insert(at.offset);
  CHECK(offsets_of_first.size() > 5);
}

TEST_CASE("the seed decides the order, and any index can be read alone") {
  const auto a = three_files(16, 1), again = three_files(16, 1), other = three_files(16, 2);
  std::size_t equal = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    CHECK(a.sample(i) == again.sample(i));
    equal += a.sample(i) == other.sample(i);
  }
  CHECK(equal < 10);
  CHECK(a.sample(~std::uint64_t{0}).size() == 17);
}

TEST_CASE("held-out windows lie in the last tenth, where no training sample reaches") {
  const auto corpus = three_files();
  CHECK(corpus.files()[1].name == "b");
  CHECK(corpus.files()[1].train_bytes == 900);
  CHECK(corpus.files()[1].held_out().size() == 100);
  CHECK(corpus.held_out_windows() == (100 - 1) / 16 + (33 - 1) / 16);
  CHECK(corpus.held_out_samples().size() == corpus.held_out_windows() * 17);
  for (const auto& segment : corpus.held_out_segments()) {
    bool inside = false;
    for (const auto& file : corpus.files())
      inside |= segment.data() >= file.held_out().data() &&
                segment.data() + segment.size() <= file.held_out().data() + file.held_out().size();
    CHECK(inside);
  }
}

TEST_CASE("links and copies count once, and the digest follows names and contents alone") {
  const scratch_folder one, two;
  const std::string text(400, 'x'), more = text + "y";
  one.write("a", text);
  one.write("b", more);
  one.write("empty", "");
  fs::create_symlink(one.path / "a", one.path / "link");
  one.write("copy_of_b", more);
  two.write("a", text);
  two.write("b", more);
  const std::vector<std::string> folder{one.path.string()}, listed{two.path / "b", two.path / "*"};
  const auto first = text_corpus::load(folder, {.context = 8});
  const auto second = text_corpus::load(listed, {.context = 8});
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->files().size() == 2);
  CHECK(first->total_bytes() == 801);
  CHECK(first->content_digest() == second->content_digest());
  two.write("b", more + "z");
  CHECK(text_corpus::load(listed, {.context = 8})->content_digest() != first->content_digest());
}

TEST_CASE("a corpus that cannot be loaded is refused with its name") {
  const scratch_folder folder;
  const auto empty = folder.write("empty", ""), short_text = folder.write("short", "abc");
  const auto missing = (folder.path / "missing").string();
  CHECK(error_of({}) == "data: no files were given");
  CHECK(error_of({missing}) == "data: there is no file '" + missing + "'");
  CHECK(error_of({empty}) == "data: the file '" + empty + "' is empty");
  CHECK(error_of({missing + "*.txt"}) == "data: no file matches '" + missing + "*.txt'");
  CHECK(error_of({short_text}).find("no training window of 5 bytes") != std::string::npos);
  CHECK(error_of({short_text}, {.context = 1}).find("held-out") != std::string::npos);
  CHECK(error_of({short_text}, {.context = 0}).find("context is 0") != std::string::npos);
  CHECK(error_of({short_text}, {.holdout = 1}).find("holdout") != std::string::npos);
  CHECK(error_of({short_text}, {.max_bytes = 2}).find("larger than its limit") !=
        std::string::npos);
  CHECK(error_of({"/dev/null"}).find("not a regular file") != std::string::npos);
  const auto secret = folder.write("secret", "some text");
  ::chmod(secret.c_str(), 0);
  if (::geteuid() != 0) CHECK(error_of({secret}).find("Permission denied") != std::string::npos);
}

TEST_CASE("the bigram loss of a small example is that computed by hand") {
  // The training pairs are ab ba ab, so count(a) = 2 and count(b) = 1. p(b|a) = 3/258, p(a|b) =
  // 2/257, p(c|b) = 1/257.
  const std::vector<std::uint8_t> train{'a', 'b', 'a', 'b'}, held_out{'a', 'b', 'c'};
  CHECK(bigram_loss(train, held_out) ==
        doctest::Approx((std::log(258.0 / 3) + std::log(257.0)) / 2));
  const std::vector<std::uint8_t> one{'a'};
  CHECK(bigram_loss(train, one) == 0);
  // No pair crosses from one segment to the next: 'b' then 'a' is never seen here.
  const std::vector<std::span<const std::uint8_t>> apart{std::span(train).first(2),
                                                         std::span(train).first(2)};
  const std::vector<std::uint8_t> back{'b', 'a'};
  const std::vector<std::span<const std::uint8_t>> asked{back};
  CHECK(bigram_loss(apart, asked) == doctest::Approx(std::log(256.0)));
}

TEST_CASE("a shuffle buffer moves no window by its size or more, and each pass still has every "
          "window once") {
  for (const std::uint64_t n : {1u, 2u, 10u, 64u, 65u, 1000u})
    for (const std::uint64_t size : {1u, 2u, 7u, 64u, 5000u})
      for (const std::uint64_t key : {1u, 2u, 99u}) {
        std::set<std::uint64_t> seen;
        std::uint64_t moved = 0;
        for (std::uint64_t i = 0; i < n; ++i) {
          const auto to = buffered(i, n, size, key);
          REQUIRE(to < n);
          CHECK((to > i ? to - i : i - to) < size);
          moved += to != i ? 1 : 0;
          seen.insert(to);
        }
        CHECK(seen.size() == n);
        if (size == 1)
          CHECK(moved == 0);
        else if (size >= 7 && n >= 64)
          CHECK(moved > n / 2);
      }
}

TEST_CASE("with a shuffle buffer the order depends on seed, pass and index alone") {
  const auto make = [](std::uint64_t seed) {
    return text_corpus::from_files({numbered("a", 20'000)},
                                   {.context = 16, .seed = seed, .shuffle_buffer = 50})
        .value();
  };
  const auto one = make(1), again = make(1), other = make(2);
  const auto windows = one.windows();
  std::uint64_t same_pass = 0, same_seed = 0;
  for (std::uint64_t i = windows; i-- > 0;) { // in any order
    CHECK(one.place_of(i).window == again.place_of(i).window);
    same_pass += one.place_of(i).window == one.place_of(windows + i).window ? 1 : 0;
    same_seed += one.place_of(i).window == other.place_of(i).window ? 1 : 0;
  }
  CHECK(same_pass < windows / 10);
  CHECK(same_seed < windows / 10);
}
