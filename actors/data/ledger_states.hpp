// The state of each issued sample index, as an interval_map has it. What is final never changes,
// and grows by some hundred pieces with each step of a large swarm, so long stretches of it are
// packed: 12 bytes a piece, and 40 for each round, instead of 110. Nothing is lost: a packed piece
// that is asked for is the same as before, and one that is written to is unpacked first.
// Complexity: as interval_map, plus the pieces of a stretch (at most 2 * stretch_pieces) for each
// one that an interval touches.
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
  peer_id peer =
      0; ///< of the lease or of the gradient; 0 if returned, or leased to nobody knows whom
  duration expires{};      ///< leased only
  std::uint64_t epoch = 0; ///< committed and partial, as all below
  group_id group;
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
  /// Those that are not packed: at most a few stretches more than what is not final.
  std::size_t open_pieces() const noexcept { return open_.piece_count(); }

  /// Gives [first, end) this state, whatever it had.
  void assign(std::uint64_t first, std::uint64_t end, const index_state& to);
  /// The pieces inside [first, end), cut at its ends, ascending. A piece that goes on from one
  /// stretch to the next is two.
  std::vector<piece> pieces(std::uint64_t first, std::uint64_t end) const;
  std::vector<piece> pieces() const;
  /// Behind the last index that has a state; 0 if none has.
  std::uint64_t end() const;

private:
  struct round {
    std::uint64_t epoch = 0;
    group_id group;
    std::uint32_t parts_total = 0;
  };
  struct packed_piece {
    std::uint32_t count = 0;
    std::uint16_t round = 0, peer = 0; // in the stretch
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
  std::size_t look_at_ = 4 * stretch_pieces; // so many open pieces: some may be packed
};

} // namespace shoal::actors
