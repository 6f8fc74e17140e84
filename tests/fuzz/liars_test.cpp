// Many changed messages of one hostile member. A swarm has an input of random bytes, which its
// number gives, so a failure names the swarm that shows it again.
#include "kernels/base/rng.hpp"
#include "tests/fuzz/liars.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

using namespace shoal;

namespace {

std::vector<std::byte> input_of(std::uint64_t swarm) {
  auto draw = stream(34, "liars", swarm);
  std::vector<std::byte> out(64 + draw.below(1024));
  for (auto& each : out) each = static_cast<std::byte>(draw.next());
  return out;
}

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

} // namespace

TEST_CASE("the changed messages of one member harm no other member of its round") {
  // SHOAL_LIARS_SWARM plays one swarm again, or with SHOAL_LIARS the swarms from there on.
  const auto first = number("SHOAL_LIARS_SWARM", 0);
  const bool one =
      std::getenv("SHOAL_LIARS_SWARM") != nullptr && std::getenv("SHOAL_LIARS") == nullptr;
  const auto wanted = one ? 1 : number("SHOAL_LIARS", tries(20'000, 10'000'000));
  const auto begun = std::chrono::steady_clock::now();
  std::uint64_t lies = 0, results = 0, swarms = 0;
  for (; lies < wanted && (swarms == 0 || !one); ++swarms) {
    const auto swarm = first + swarms;
    const auto input = input_of(swarm);
    // SHOAL_LIARS_FILE: the input of the swarm is written there, for the corpus.
    if (const char* file = std::getenv("SHOAL_LIARS_FILE"); one && file != nullptr)
      std::ofstream(file, std::ios::binary)
          .write(reinterpret_cast<const char*>(input.data()),
                 static_cast<std::streamsize>(input.size()));
    const auto seen = fuzz::play_liars(input);
    lies += seen.lies;
    results += seen.results;
    CHECK_MESSAGE(seen.harm.empty(), "swarm " << swarm << ": " << seen.harm.front());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  MESSAGE(lies << " changed messages in " << swarms << " swarms, " << results
               << " certified results; " << static_cast<double>(lies) / took.count()
               << " messages a second");
  CHECK(lies > 0);
  // A liar that stops each round at its first message would leave the later messages untested.
  CHECK((one || results > swarms / 4));
}
