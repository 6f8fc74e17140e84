#include "actors/data/ledger_states.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;

namespace {

using kind = index_state::kind;
constexpr std::uint64_t round_size = 4096, peers = 28;

index_state used(peer_id peer, std::uint64_t epoch, std::uint32_t included = 4) {
  return {
      included == 4 ? kind::committed : kind::partial, peer, {}, epoch, {epoch, 7}, included, 4};
}

bool same(const std::vector<ledger_states::piece>& a, const std::vector<ledger_states::piece>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.end == y.end && x.value == y.value;
  });
}

} // namespace

TEST_CASE("final states are packed, and read as if they were still in the map") {
  ledger_states packed;
  interval_map<index_state> plain;
  auto draws = stream(1, "ledger");
  const auto assign = [&](std::uint64_t first, std::uint64_t end, const index_state& to) {
    packed.assign(first, end, to);
    plain.assign(first, end, to);
  };
  std::size_t most_open = 0;
  for (std::uint64_t epoch = 0; epoch < 400; ++epoch) {
    const auto begin = epoch * round_size;
    for (auto at = begin; at < begin + round_size;) {
      const auto end = std::min(at + 1 + draws.below(64), begin + round_size);
      const auto peer = 1 + draws.below(peers);
      // A few samples are never used: returned, or leased for ever.
      const auto fate = draws.below(500);
      if (fate == 0)
        assign(at, end, {});
      else if (fate == 1)
        assign(at, end, {kind::leased, peer, std::chrono::seconds(5)});
      else
        assign(at, end, used(peer, epoch, fate < 10 ? 3 : 4));
      at = end;
    }
    most_open = std::max(most_open, packed.open_pieces());
  }
  CHECK(packed.end() == 400 * round_size);
  CHECK(same(packed.pieces(), plain.pieces()));
  CHECK(packed.piece_count() == plain.piece_count());
  CHECK(plain.piece_count() > 40'000);
  CHECK(most_open < 20'000);
  for (int i = 0; i < 1000; ++i) {
    const auto first = draws.below(400 * round_size), end = first + draws.below(3 * round_size);
    CHECK(same(packed.pieces(first, end), plain.pieces(first, end)));
  }
  // The ledger never writes to packed states, but a write would still work.
  for (int i = 0; i < 20; ++i) {
    const auto first = draws.below(400 * round_size);
    assign(first, first + 100, used(3, 1000 + draws.below(5)));
    CHECK(same(packed.pieces(), plain.pieces()));
  }
}

TEST_CASE("index blocks that are far apart are packed separately") {
  ledger_states packed;
  constexpr std::uint64_t far = std::uint64_t{1} << 40;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    packed.assign(i, i + 1, used(i % peers, 0));
    packed.assign(far + i, far + i + 1, used(i % peers, 0));
  }
  CHECK(packed.open_pieces() < 10'000);
  CHECK(packed.piece_count() == 20'000);
  CHECK(packed.pieces(5000, far + 5000).size() == 10'000);
  CHECK(packed.pieces(20'000, far).empty());
  CHECK(packed.end() == far + 10'000);
}
