// A peer's side of finding out how others can reach it (actors/reachability.hpp): when it looks,
// whom it asks, whom it greets so that they can reach it, and what it does for others that look. A
// plain state machine; the actor that owns it sends the messages.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/reachability.hpp"
#include "actors/training/progress.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace shoal::actors {

class reach_agent {
public:
  reach_agent(const reachability_config& config, rng draws)
      : config_(config), rules_(config, draws) {}

  bool enabled() const noexcept { return config_.enabled; }
  reach known() const noexcept { return rules_.known(); }
  /// Nothing is gained by waiting for a verdict.
  bool settled() const noexcept { return rules_.settled(); }
  /// The hosts that can connect to this peer. `has_relay`: a relay passes on what is sent to it.
  reached_by reached(bool has_relay) const;

  // Looking.
  /// Whether a look may begin.
  bool due(duration now) const {
    return config_.enabled && !rules_.looking() && now >= rules_.next_look();
  }
  using queries = std::vector<std::pair<caf::actor, address_query>>;
  /// Begins a look if it is due; the queries to send. None: no look has begun. The look is over
  /// after `patience`, and the queries are to be repeated once after `repeat_after`; both timers
  /// carry token().
  queries look(const progress_table& others, const caf::actor& self,
               const std::vector<caf::actor>& shards, duration now);
  duration patience() const noexcept { return config_.patience; }
  duration repeat_after() const noexcept { return config_.patience / 4; }
  std::uint64_t token() const noexcept { return rules_.token(); }
  /// Whether the look of that token is under way.
  bool looking(std::uint64_t token) const { return rules_.looking() && token == rules_.token(); }
  queries again() const { return rules_.again(); }
  /// Takes in an answer. True: the look has all its answers.
  template <class Answer>
  bool on(const Answer& message, const caf::strong_actor_ptr& sender) {
    rules_.on(message, sender);
    return rules_.looking() && rules_.complete();
  }
  /// Ends the look. True: what is known has changed.
  bool conclude(duration now) { return rules_.conclude(now); }

  /// The peers to greet: a peer that nobody can reach dials those that can be reached, so that they
  /// reach it. Each is named once.
  std::vector<caf::actor> to_greet(const progress_table& others, bool has_relay);

  // For others that look.
  dial_helper& helper() noexcept { return helper_; }

private:
  reachability_config config_;
  reachability rules_;
  dial_helper helper_;
  duration first_look_{};
  std::set<peer_id> greeted_;
};

} // namespace shoal::actors
