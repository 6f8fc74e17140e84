// A peer's part in finding out how others can reach it (actors/reachability.hpp). It decides when
// to inquire, which peers to ask and which to greet, and helps other peers' inquiries. A plain
// state machine; its owner sends the messages.
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
  /// True if waiting for a verdict is of no use.
  bool settled() const noexcept { return rules_.settled(); }
  /// The hosts that can connect to this peer. `has_relay`: a relay forwards messages to this peer.
  reached_by reached(bool has_relay) const;

  // Inquiries.
  /// True if an inquiry may begin.
  bool due(duration now) const {
    return config_.enabled && !rules_.looking() && now >= rules_.next_look();
  }
  using queries = std::vector<std::pair<caf::actor, address_query>>;
  /// Begins an inquiry if one is due, and returns the queries to send; none if no inquiry began. It
  /// ends after `timeout`. The queries are repeated once, after `repeat_after`. Both timers carry
  /// token(). `on` says which member each address belongs to.
  queries look(const progress_table& others, const caf::actor& self,
               const std::vector<caf::actor>& shards, duration now, const host& on);
  duration timeout() const noexcept { return config_.timeout; }
  duration repeat_after() const noexcept { return config_.timeout / 4; }
  std::uint64_t token() const noexcept { return rules_.token(); }
  /// True if the inquiry of that token is under way.
  bool looking(std::uint64_t token) const { return rules_.looking() && token == rules_.token(); }
  queries again() const { return rules_.again(); }
  /// Takes an answer. True if the inquiry has all its answers.
  template <class Answer>
  bool on(const Answer& message, const caf::strong_actor_ptr& sender) {
    rules_.on(message, sender);
    return rules_.looking() && rules_.complete();
  }
  /// Ends the inquiry. True if the verdict has changed.
  bool conclude(duration now) { return rules_.conclude(now); }

  /// The peers to greet. A peer that no other host can dial connects to the reachable ones itself,
  /// so that they can reach it. Each peer is named once.
  std::vector<caf::actor> to_greet(const progress_table& others, bool has_relay);

  // Help for other peers' inquiries.
  dial_helper& helper() noexcept { return helper_; }

private:
  reachability_config config_;
  reachability rules_;
  dial_helper helper_;
  duration first_look_{};
  std::set<peer_id> greeted_;
};

} // namespace shoal::actors
