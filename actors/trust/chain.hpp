// The chain of a branch: the steps from the initial state to a head, each with the proof that a
// round certified it. Every peer computes the initial state from the seed, so a chain needs
// nobody's word.
//
// A step's certificate has the signed roster of the round, and the signed votes of more than two
// thirds of it. The id of the next state is a hash. It covers the state before, the group id and
// the certified version, so the states of a chain fix each other.
//
// Fork rule. Let two chains part after a common state. The supporters of a chain are the members
// that took part in one of its steps after that state. The chain with more supporters leads. With
// equally many supporters, the longer chain leads, and of equally long chains the one whose head
// has the smaller id. So one member gains nothing by many rounds of its own, and nothing by a high
// epoch. The chain of a lone member leads no peer, either (actors/training/chain_follower.hpp).
//
// The decision and its limits are in docs/adr/0031-follow-a-chain-not-a-claim.md. Plain values.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace shoal::actors {

class host;
struct round_certificate;

/// A state, and the number of steps that led to it.
struct chain_point {
  std::uint64_t epoch = 0;
  state_id state;

  auto operator<=>(const chain_point&) const = default;

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, chain_point& x) {
    return f(x.epoch, x.state);
  }
};

/// A step that a certificate proves, and the facts that the chain needs of it.
struct certified_step {
  chain_point before, after;
  /// The hash of the state `before`, as more than two thirds of the roster signed it; zero if they
  /// do not agree.
  id128 root;
  /// The members that signed the roster and took the result, ascending. More than two thirds of
  /// them voted for it.
  std::vector<member_id> supporters;
  std::shared_ptr<const round_certificate> certificate;
};
using step_ptr = std::shared_ptr<const certified_step>;

/// The state after the step from `before` by the certified mean of a round. `version` covers the
/// values, so equal ids mean equal bits.
state_id state_after(const state_id& before, const group_id& group, const id128& version);

/// The step of this certificate. Errors: the certificate does not prove it to `here`.
result<step_ptr> prove(std::shared_ptr<const round_certificate> certificate, host& here);
/// The same for a certificate that is checked already, as that of a round of one's own.
step_ptr step_of(std::shared_ptr<const round_certificate> certificate);

/// Equal entries have the same rank in the fork rule.
struct chain_weight {
  std::size_t supporters = 0;
  std::size_t steps = 0;
  state_id head;

  /// True if a chain of this weight leads one of weight `other`, from a common state on.
  bool leads(const chain_weight& other) const noexcept;
};
/// `from` is the common state, and the head if there are no steps.
chain_weight weight_of(const chain_point& from, std::span<const step_ptr> steps);

class chain {
public:
  /// The bound on the steps that are kept. A chain forgets the older half when it is reached, and
  /// then proves only what came later.
  static constexpr std::size_t most_steps = 1 << 16;
  /// The bound on the points of a locator.
  static constexpr std::size_t most_points = 64;

  explicit chain(chain_point start) : start_(start) {}

  /// The first state that this chain can name. The initial state, unless the chain was too long.
  const chain_point& start() const noexcept { return start_; }
  const chain_point& head() const noexcept {
    return steps_.empty() ? start_ : steps_.back()->after;
  }
  const std::deque<step_ptr>& steps() const noexcept { return steps_; }

  /// Adds a step. Errors: it does not lead on from the head.
  result<void> extend(step_ptr step);
  /// True if this state is on the chain.
  bool contains(const chain_point& point) const;
  /// The step that led to this epoch; null if it is not on the chain.
  step_ptr step_to(std::uint64_t epoch) const;
  /// The steps after `point`. Requires: contains(point).
  std::vector<step_ptr> after(const chain_point& point) const;
  /// Forgets the steps after `point`. Requires: contains(point).
  void cut(const chain_point& point);

  /// Some states of the chain, newest first: the last eight, then ever fewer, and the first one.
  std::vector<chain_point> locator() const;
  /// The newest state of a locator that is on this chain.
  std::optional<chain_point> common(std::span<const chain_point> locator) const;

private:
  chain_point start_;
  std::deque<step_ptr> steps_;
};

} // namespace shoal::actors
