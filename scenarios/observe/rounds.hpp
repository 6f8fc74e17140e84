// Puts together what single members say of their rounds: a round is ok, partial, split or failed as
// a whole (docs/design.md, section 4), with one reason.
//
//   ok       all survivors completed it and no part lacks anybody's weight
//   partial  all survivors completed it; some weight is missing from some parts
//   split    some survivors completed it, others failed
//   failed   no survivor completed it (nor, if nobody survived, anybody at all)
// Survivors are the members that ended it and were not killed before it became final.
//
// A round is final when each member has ended it or died. A member that was killed before it could
// say who it is cannot be told from a slow one: such a round is final `grace` after its last sign
// of life. Rounds that the end of the run interrupts are not counted under any outcome.
//
// Attempts that end before a group formed (group id zero) have no members to wait for. by_reason
// counts them once for each peer and epoch, whatever the number of retries. As a `failed` round
// they count once for each epoch, and only if the swarm's round failed: `group_closed`,
// `out_of_sync` and `cancelled` say that it took place without this peer.
//
// Of two rounds that follow each other (PowerSGD) the second one counts; the first one only if it
// did not end well, since then there is no second, or one without some of the survivors.
//
// In local view only the members of one host are ever known: a round is final when these have ended
// it, and its outcome and reason are theirs. Whoever reads what all hosts wrote
// (scenarios/compare/run_nodes.hpp) puts the whole together.
//
// Memory: bounded by the open rounds; a final round's payloads are dropped.
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

/// What is known of one member of a round.
struct round_member {
  bool known = false; ///< it said who it is
  bool contributed = false;
  bool ended = false;
  bool dead = false;
  bool takes = true; ///< false: it only reduced; how the round ended is not its to say
  actors::peer_id peer = 0;
  std::uint64_t weight = 0;
  std::vector<actors::sample_range> samples;
  payload values;  ///< its contribution
  double loss = 0; ///< mean of what it computed for it; not finite: not known
  actors::outcome outcome = actors::outcome::failed;
  actors::reason reason = actors::reason::none;
  bool same_values = true; ///< as the first that completed
  bool same_parts = true;

  bool completed() const noexcept { return takes && ended && outcome != actors::outcome::failed; }
};

struct swarm_round {
  actors::group_id group;
  std::uint64_t epoch = 0;
  duration started{}, ended{};
  std::vector<round_member> members;
  /// As the first member that completed it has them.
  bool completed = false;
  std::vector<actors::part_outcome> parts;
  payload mean;
  /// Set when it is final.
  actors::outcome outcome = actors::outcome::failed;
  actors::reason reason = actors::reason::none;
  bool unfinished = false; ///< the run ended first
  bool first_of_two =
      false; ///< what it averaged is the basis of a second round of the same members
};

/// Whether the data of member `index` is in the result of a round that survivors completed.
bool is_included(const swarm_round& what, std::uint32_t index);

/// Samples of the members whose data is in the result; 0 if no survivor completed the round.
std::uint64_t samples_included(const swarm_round& what);

struct round_counts {
  std::array<std::uint64_t, 4> by_outcome{}; ///< by actors::outcome
  std::map<std::string, std::uint64_t> by_reason;
  std::uint64_t completed = 0;  ///< rounds that somebody completed
  double completed_seconds = 0; ///< from group_begun to their last member's end, summed
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

  /// `loss`: mean of the samples that the peer computed for it; not finite if that is not known.
  void contributed(duration time, actors::peer_id peer, const actors::contributed& what,
                   double loss = std::numeric_limits<double>::quiet_NaN());
  void ended(duration time, actors::peer_id peer, const actors::round_ended& what);
  void killed(duration time, actors::peer_id peer);
  /// Time has come to `time`: makes rounds final that wait for nobody who will come.
  void advance(duration time);
  /// The run is over: no round stays open.
  void finish(duration time);

  const round_counts& counts() const noexcept { return counts_; }
  std::size_t open() const noexcept { return open_.size(); }

private:
  struct open_round {
    swarm_round what;
    duration last_sign{};
  };
  /// What stays of a final round for a while, in case a member comes late.
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
