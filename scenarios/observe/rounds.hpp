// Combines the observations of single members into the outcome of the whole round: ok, partial,
// split or failed, with one reason (docs/design.md, section 4).
//
//   ok       all survivors completed the round, and no part lacks a member's weight
//   partial  all survivors completed the round, and some parts lack some weight
//   split    some survivors completed the round, others failed
//   failed   no survivor completed the round; without survivors: no member completed it
// A survivor is a member that ended the round and was not killed before the round became final.
//
// A round is final when each member has ended it or died. A member that was killed before it told
// its identity looks like a slow member. A round with such a member is final `grace` after the last
// observation of the round. A round that the end of the run interrupts has no outcome.
//
// An attempt that ends before a group formed (group id zero) has no members to wait for. by_reason
// counts such attempts once for each peer and epoch, whatever the number of retries. They count as
// one `failed` round for each epoch, and only if the swarm's round failed. The reasons
// `group_closed`, `out_of_sync` and `cancelled` say that the round took place without this peer.
//
// PowerSGD averages in two rounds, one after the other, and the second round counts. The first one
// counts only if it did not end well: the second round is then missing or lacks some survivors.
//
// In local view the book knows only the members of one host. A round is final when these members
// have ended it, and its outcome and reason are theirs alone. scenarios/compare/run_nodes.hpp
// combines the records of all hosts.
//
// Memory: bounded by the open rounds. The payloads of a final round are dropped.
#pragma once

#include "actors/averaging/part_outcome.hpp"
#include "actors/ids.hpp"
#include "actors/reasons.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/units.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace shoal::actors {
struct contributed;
struct round_ended;
} // namespace shoal::actors

namespace shoal::scenarios {

/// How much of a swarm the observers see.
enum class observed_view : std::uint8_t {
  whole, ///< every host
  local, ///< the actors of one host, as in a process of a cluster
};

/// The observations of one member of a round.
struct round_member {
  bool known = false; ///< the member has told its peer id
  bool contributed = false;
  bool ended = false;
  bool dead = false;
  bool takes =
      true; ///< false: the member only reduced, and its outcome does not count for the round
  actors::peer_id peer = 0;
  std::uint64_t weight = 0;
  std::vector<actors::sample_range> samples;
  payload values;  ///< the member's contribution
  double loss = 0; ///< mean loss of the samples it contributed; not finite: unknown
  actors::outcome outcome = actors::outcome::failed;
  actors::reason reason = actors::reason::none;
  bool same_values = true; ///< equal to the mean of the first member that completed
  bool same_parts = true;  ///< equal to the parts of the first member that completed

  bool completed() const noexcept { return takes && ended && outcome != actors::outcome::failed; }
};

struct swarm_round {
  actors::group_id group;
  std::uint64_t epoch = 0;
  duration started{}, ended{};
  std::vector<round_member> members;
  /// `parts` and `mean` are those of the first member that completed the round.
  bool completed = false;
  std::vector<actors::part_outcome> parts;
  payload mean;
  /// `outcome` and `reason` are set when the round is final.
  actors::outcome outcome = actors::outcome::failed;
  actors::reason reason = actors::reason::none;
  bool unfinished = false; ///< the run ended before the round was final
  /// The same members average again in a second round, based on this round's mean.
  bool first_of_two = false;
};

/// Whether the data of member `index` is in the result of a round that survivors completed.
bool is_included(const swarm_round& what, std::uint32_t index);

/// Samples of the members whose data is in the result; 0 if no survivor completed the round.
std::uint64_t samples_included(const swarm_round& what);

struct round_counts {
  std::array<std::uint64_t, 4> by_outcome{}; ///< by actors::outcome
  std::map<std::string, std::uint64_t> by_reason;
  std::uint64_t completed = 0; ///< rounds that at least one member completed
  /// Sum over these rounds of the time from group_begun to the last member's end.
  double completed_seconds = 0;
  std::uint64_t unfinished = 0;
  std::uint64_t late = 0; ///< members that ended after their round was final
  std::uint64_t of(actors::outcome which) const {
    return by_outcome[static_cast<std::size_t>(which)];
  }
};

class round_book {
public:
  /// `on_final` is called once for each round of a group.
  explicit round_book(std::function<void(const swarm_round&)> on_final,
                      duration grace = std::chrono::seconds(120),
                      observed_view view = observed_view::whole);

  /// `loss`: mean loss of the samples that the peer computed for this round; not finite: unknown.
  void contributed(duration time, actors::peer_id peer, const actors::contributed& what,
                   double loss = std::numeric_limits<double>::quiet_NaN());
  void ended(duration time, actors::peer_id peer, const actors::round_ended& what);
  void killed(duration time, actors::peer_id peer);
  /// The time is now `time`. Makes each round final that waits for no living member.
  void advance(duration time);
  /// The run is over. Closes every open round.
  void finish(duration time);

  const round_counts& counts() const noexcept { return counts_; }
  std::size_t open() const noexcept { return open_.size(); }

private:
  struct open_round {
    swarm_round what;
    duration last_sign{};
  };
  /// A final round as it is kept for a while, in case a member ends it late.
  struct final_round {
    actors::group_id group;
    std::uint64_t completed = 0, partial = 0, failed = 0;
    actors::outcome outcome = actors::outcome::failed;
    actors::reason reason = actors::reason::none;
    bool first_of_two = false;
  };
  using iterator = std::map<actors::group_id, open_round>::iterator;

  open_round& find(duration time, const actors::group_id& group, std::uint64_t epoch,
                   std::uint32_t members);
  round_member& member(open_round& in, duration time, std::uint32_t index, actors::peer_id peer);
  void ended_without_group(actors::peer_id peer, const actors::round_ended& what);
  void late(const actors::round_ended& what);
  bool is_final(const open_round& what, duration time) const;
  bool finish_if_final(iterator at, duration time);
  void close(iterator at, bool unfinished);
  void count(const final_round& what, int by);

  std::function<void(const swarm_round&)> on_final_;
  duration grace_;
  observed_view view_;
  std::map<actors::group_id, open_round> open_;
  std::unordered_map<actors::peer_id, std::vector<actors::group_id>> rounds_of_; // never iterated
  std::unordered_map<actors::peer_id, duration> dead_;                           // never iterated
  std::deque<final_round> recent_;
  std::set<std::pair<std::uint64_t, actors::peer_id>> attempts_; // (epoch, peer) without a group
  std::set<std::uint64_t> failed_epochs_;
  duration next_sweep_{};
  round_counts counts_;
};

} // namespace shoal::scenarios
