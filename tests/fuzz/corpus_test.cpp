// Plays the corpora through the targets, without a fuzzer, so that repaired faults stay repaired in
// every build. Each file is played as it is, and cut and changed a little, so that a target sees
// more than the stored inputs.
#include "kernels/base/rng.hpp"
#include "tests/fuzz/targets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace shoal;

namespace {

std::vector<std::filesystem::path> corpus(const std::string& target) {
  std::vector<std::filesystem::path> out;
  for (const auto& each : std::filesystem::directory_iterator("tests/fuzz/corpus/" + target))
    out.push_back(each.path());
  std::sort(out.begin(), out.end());
  return out;
}

void play(const std::string& name, void (*target)(fuzz::bytes)) {
  const auto files = corpus(name);
  REQUIRE(files.size() >= 3);
  for (const auto& path : files) {
    std::ifstream in(path, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    INFO(path.string());
    target(std::as_bytes(std::span(whole)));
    auto draw = stream(1, "corpus", whole.size());
    for (int round = 0; round < 8 && !whole.empty(); ++round) {
      auto other = whole.substr(0, round % 2 == 0 ? whole.size() : draw.below(whole.size()));
      for (auto changes = draw.below(4); changes > 0 && !other.empty(); --changes)
        other[draw.below(other.size())] ^= static_cast<char>(1 << draw.below(8));
      target(std::as_bytes(std::span(other)));
    }
  }
}

} // namespace

#define SHOAL_PLAY(name)                                                                           \
  TEST_CASE("the corpus of " #name " goes through") {                                              \
    play(#name, fuzz::name);                                                                       \
  }
SHOAL_FUZZ_TARGETS(SHOAL_PLAY)
#undef SHOAL_PLAY
