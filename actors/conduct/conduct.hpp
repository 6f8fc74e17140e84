// How a host behaves where the protocols leave it a choice to cheat, to err, or to be honest. The
// base class is the honest host: each hook does nothing, or gives back what it was given. Injected
// bugs and attacks override some of them.
//
// The actors of a host hold one object, given by whatever spawns them, and call its hooks at the
// named points; nothing else in them knows of bugs or attacks. A hook is called for a round, a job,
// a chunk or a message, never for single values. A conduct holds no addresses of actors, because it
// outlives them.
//
// Thread safety: on the wall clock, actors of one host and its compute jobs may call different
// hooks at the same time.
//
// To add a conduct: derive from `conduct` in this folder, and add one line to the list in
// conducts.cpp. `peers.GROUP.conduct` in a scenario names it then.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::actors {

struct branch;
struct ledger_row;
struct member_info;
struct round_request;

/// The result of a reducer, for a chunk or a part.
struct reduced_unit {
  std::span<float> values;
  double weight = 0;              ///< of the senders that are in it
  std::uint64_t group_weight = 0; ///< of all members
  std::size_t senders = 0;
};

class conduct {
public:
  virtual ~conduct() = default;

  // -- a trainer --

  /// A gradient at a state of `epoch` is about to be computed; so is an optimizer step. On a
  /// compute thread: what it throws ends the run.
  virtual void before_gradient(std::uint64_t epoch) { (void)epoch; }
  virtual void before_step(std::uint64_t epoch) { (void)epoch; }
  /// A job has computed `samples`; those that are left in the list count. `first`: they are the
  /// first since the last round.
  virtual void count_samples(std::vector<sample_range>& samples, bool first) {
    (void)samples;
    (void)first;
  }
  /// Whether it goes over to the leading branch.
  virtual bool follows(const branch& leading, const branch& own) {
    (void)leading;
    (void)own;
    return true;
  }
  /// A trainer of the synchronous method asks for a round.
  virtual void ask_for_round(round_request& request) { (void)request; }
  /// Whether gradients that a round has averaged are kept for the next one.
  virtual bool reuses_gradients() { return false; }

  // -- a member of a group --

  /// Changes the contribution to a round that begins. Requires: the size stays.
  virtual void contribute(payload& values, const round_request& request) {
    (void)values;
    (void)request;
  }
  /// In which order it serves the other members, given as indices.
  virtual void order_members(std::vector<std::uint32_t>& others,
                             const std::vector<member_info>& members) {
    (void)others;
    (void)members;
  }
  /// How many votes it takes for a majority.
  virtual std::uint32_t votes_needed(std::uint32_t majority) { return majority; }
  /// Whether its group actor stays when nobody needs it any more.
  virtual bool stays_in_group() { return false; }

  // -- a reducer --

  /// The weight that it gives to a member's values.
  virtual double weight_of(std::uint32_t member, double weight) {
    (void)member;
    return weight;
  }
  /// It has reduced a chunk or a part, and is about to send it.
  virtual void reduced(const reduced_unit& what) { (void)what; }

  // -- a node of the DHT --

  /// Whether it gives records to readers that it knows to have expired.
  virtual bool gives_expired_records() { return false; }

  // -- a replica of the data shard --

  /// The rows of an update that it applies: `rows`, or others, which it puts into `room`.
  virtual std::span<const ledger_row> rows_to_apply(std::span<const ledger_row> rows,
                                                    std::vector<ledger_row>& room) {
    (void)room;
    return rows;
  }
};

/// The honest conduct; it has no state, and all hosts share it.
const std::shared_ptr<conduct>& honest_conduct();

} // namespace shoal::actors
