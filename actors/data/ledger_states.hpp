// The state of each issued sample index: an interval_map that packs final pieces. A final state
// never changes, and each step of a large swarm adds hundreds of pieces. Long stretches of final
// pieces therefore take 12 bytes per piece and 40 per round, instead of 110 per piece. Reads see
// the original pieces. A write unpacks the stretch first.
//
// Complexity: as interval_map, plus the pieces of each stretch that an interval touches (at most 2
// * stretch_pieces).
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/interval_map.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace shoal::actors {

/// The state of one issued index.
struct index_state {
  enum class kind : std::uint8_t { leased, returned, committed, partial };
  kind state = kind::returned;
  /// The peer of the lease or of the gradient. 0 if returned, or if an unclaimed lease.
  peer_id peer = 0;
  duration expires{};      ///< leased only
  std::uint64_t epoch = 0; ///< committed and partial only, as are the fields below
  group_id group{};
  std::uint32_t parts_included = 0, parts_total = 0;

  bool is_final() const noexcept { return state == kind::committed || state == kind::partial; }
  bool operator==(const index_state&) const = default;
};

class ledger_states {
public:
  using piece = interval_map<index_state>::piece;
  static constexpr std::size_t stretch_pieces = 1024;

  bool empty() const noexcept { return open_.empty() && packed_.empty(); }
  std::size_t piece_count() const noexcept { return open_.piece_count() + packed_pieces_; }
  /// The pieces that are not packed: at most a few stretches more than those that are not final.
  std::size_t open_pieces() const noexcept { return open_.piece_count(); }

  /// Gives all of [first, end) this state.
  void assign(std::uint64_t first, std::uint64_t end, const index_state& to);
  /// The pieces inside [first, end), cut at its ends, ascending. A piece across the boundary of two
  /// stretches is returned as two.
  std::vector<piece> pieces(std::uint64_t first, std::uint64_t end) const;
  std::vector<piece> pieces() const;
  /// The end of the last index that has a state; 0 if there is none.
  std::uint64_t end() const;

private:
  struct round {
    std::uint64_t epoch = 0;
    group_id group;
    std::uint32_t parts_total = 0;
  };
  struct packed_piece {
    std::uint32_t count = 0;
    std::uint16_t round = 0, peer = 0; // positions in the stretch's lists
    std::uint32_t parts_included = 0;
  };
  /// Final pieces without gaps.
  struct stretch {
    std::uint64_t first = 0, end = 0;
    std::vector<round> rounds;
    std::vector<peer_id> peers;
    std::vector<packed_piece> pieces;
  };
  using stretches = std::map<std::uint64_t, stretch>; // by the first index

  stretches::const_iterator stretch_from(std::uint64_t index) const;
  static void unpack(const stretch& from, std::uint64_t first, std::uint64_t end,
                     std::vector<piece>& into);
  void pack();
  void pack(const std::vector<piece>& run);

  interval_map<index_state> open_;
  stretches packed_;
  std::size_t packed_pieces_ = 0;
  std::size_t look_at_ = 4 * stretch_pieces; // number of open pieces at which to try packing
};

} // namespace shoal::actors
