// What peers tell each other about their progress, and what each concludes on its own: nobody
// counts for the others (DeDLOC without a centre). A plain value type and a plain table.
//
// The leading branch is the one with the highest epoch, then the most samples in its history, then
// the smallest state id; a peer whose state is not the leading one is out of sync.
// Source: Diskin et al., arXiv:2106.10207, section 3; the branch rule is DESIGN section 4.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/dht/messages.hpp"
#include "actors/reachability/reach.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shoal::actors {

inline constexpr const char* progress_key = "progress";

/// Where a peer is with the round that leads on from its state.
/// `passes`: nobody had given anything to it, and it goes on without a step.
enum class round_part : std::uint8_t { takes_part, has_result, came_late, passes };

struct progress {
  std::uint64_t epoch = 0;
  state_id state;
  std::uint64_t history = 0; ///< samples in all steps that led to `state`
  std::uint64_t samples = 0; ///< accumulated towards the next step
  std::uint64_t millisamples_per_second = 0;
  std::uint64_t rate_up = 0;     ///< bit/s, for choosing donors
  std::uint64_t arriving = 0;    ///< 1: is still downloading `state`
  std::uint64_t unreachable = 0; ///< 1: reached only by those that it has dialled
  actors::reach reach = actors::reach::unknown;
  /// Milliseconds until its next record at the latest, if it computes until then; 0: it computes
  /// nothing now. So long the others may reckon with what it will have computed.
  std::uint64_t computes_for_ms = 0;
  /// Of the round that leads on from `state`, where it goes on beside computing (training.overlap):
  /// samples that we gave to it, or shall.
  std::uint64_t contribution = 0;
  round_part part = round_part::takes_part;

  bool operator==(const progress&) const = default;

  payload pack() const;
  /// Empty if `bytes` is not what pack() makes.
  static std::optional<progress> unpack(const payload& bytes);
};

struct branch {
  std::uint64_t epoch = 0;
  std::uint64_t history = 0;
  state_id state;

  /// True if this one leads.
  bool leads(const branch& other) const noexcept {
    if (epoch != other.epoch) return epoch > other.epoch;
    if (history != other.history) return history > other.history;
    return state < other.state;
  }
  bool operator==(const branch&) const = default;
};

class progress_table {
public:
  struct entry {
    progress what;
    caf::actor address;
    duration changed{};     ///< when we first saw it say so
    std::uint64_t look = 0; ///< which look found it, last
  };

  /// Replaces the table by what the DHT returned; records of `self` are left out.
  void replace(const std::vector<shared<record>>& records, peer_id self, duration now);
  /// Ascending by peer.
  const std::vector<std::pair<peer_id, entry>>& entries() const noexcept { return entries_; }
  /// Null: it is not known.
  const entry* find(peer_id peer) const;
  /// Requires: find(peer).
  const entry& at(peer_id peer) const { return *find(peer); }

  /// The leading branch among the records and `own`. Who is only arriving proves no branch: two
  /// joiners that believed each other would keep one alive that everybody who had it has taken
  /// along.
  branch leading(const branch& own) const;
  /// Samples of the others on `which`.
  std::uint64_t samples_on(const branch& which) const;
  /// The same, with what they will have computed since they spoke; those that are one step behind
  /// are taken to have stepped when we did, at `stepped`. Who had been silent for longer than it
  /// said (and a second) when we last looked is lost, or its word is: it counts with what it said.
  double samples_expected_on(const branch& which, duration now, duration stepped) const;
  /// Speed of the others that are within one epoch: just after a step not all have said so yet.
  double samples_per_second_near(std::uint64_t epoch) const;
  /// Samples in the others' contributions to the round that leads on from there, where it goes on
  /// beside computing; of those that are still at its parent, what they have computed.
  std::uint64_t contributions_to(std::uint64_t epoch, const state_id& state,
                                 const state_id& parent) const;
  /// Somebody there has given to that round, or has its result.
  bool round_under_way(std::uint64_t epoch, const state_id& state) const;
  struct contributors {
    std::size_t count = 0, reachable = 0; ///< reachable: who may lead and reduce
  };
  /// Who there have given to it, and have no result yet.
  contributors contributors_to(std::uint64_t epoch, const state_id& state) const;
  /// Whether somebody on that state goes on without a round.
  bool passed(std::uint64_t epoch, const state_id& state) const;
  /// Those who have its result.
  std::vector<peer_id> peers_through(std::uint64_t epoch, const state_id& state) const;
  /// Samples of those that are at `epoch`, whatever their state.
  std::uint64_t samples_at(std::uint64_t epoch) const;
  /// How many are within one epoch.
  std::size_t peers_near(std::uint64_t epoch) const;
  /// The epoch that half of the peers have reached, `own` among them (of an even number: the upper
  /// median). Not the highest one: a few that were cut off may have gone on alone.
  std::uint64_t median_epoch(std::uint64_t own) const;
  /// Those who have a state of `epoch` or a later one.
  std::vector<peer_id> peers_from(std::uint64_t epoch) const;
  /// Those who have its state.
  std::vector<peer_id> peers_on(const branch& which) const;
  /// Those on that state who are not through with its round, and those who were on it when it was
  /// one step behind, at `parent`: they are just stepping.
  std::vector<expected_peer> expected_on(std::uint64_t epoch, const state_id& state,
                                         const state_id& parent) const;

private:
  std::vector<std::pair<peer_id, entry>>
      entries_;       // sums over all of them are made several times for each message
  duration looked_{}; // when we last read the records
  std::uint64_t looks_ = 0;
};

} // namespace shoal::actors
