// A small swarm with one hostile member, from the bytes of an input.
#pragma once

#include "tests/fuzz/targets.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::fuzz {

struct lying_swarm {
  std::uint64_t lies = 0;    ///< messages of the hostile member that a correct one does not send
  std::uint64_t results = 0; ///< honest members whose round ended with a certificate
  std::vector<std::string> harm; ///< the broken promises (tests/actors/support/liar.hpp)
};

/// The swarm that the input describes. The same input gives the same messages.
lying_swarm play_liars(bytes input);

} // namespace shoal::fuzz
