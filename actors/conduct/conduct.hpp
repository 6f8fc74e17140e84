// How a host behaves where it could cheat or err. The base class is the honest host: each hook does
// nothing, or returns its argument. Injected bugs and attacks override hooks.
//
// The actors of a host share one object, which their spawner provides. They call its hooks at the
// named points and contain no code for bugs or attacks. A hook is called for a round, a job, a
// chunk or a message, never for single values. A conduct holds no addresses of actors, because it
// outlives them.
//
// Thread safety: on the wall clock, actors of one host and its compute jobs may call different
// hooks concurrently.
//
// To add a conduct: derive from `conduct` in this folder, and add one line to the list in
// conducts.cpp. Scenarios select it by name with `peers.GROUP.conduct`.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>
#include <caf/message.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shoal::actors {

struct branch;
struct ledger_row;
struct member_info;
struct part_checks;
struct round_commitment;
struct round_request;
class workload;

/// A reducer's result for a chunk or a part.
struct reduced_unit {
  std::span<float> values;
  double weight = 0;              ///< the sum over the senders in it
  std::uint64_t group_weight = 0; ///< the sum over all members
  std::size_t senders = 0;
};

/// A message of the host to another host.
struct outgoing_message {
  caf::actor to;
  caf::message content;
};

class conduct {
public:
  virtual ~conduct() = default;

  // -- everything that the host sends --

  /// True if alter() has to see the messages.
  virtual bool alters_messages() const { return false; }
  /// Replaces a message to another host by those in `out`. Called on the sender's thread, before
  /// the message enters the network.
  virtual void alter(outgoing_message message, std::vector<outgoing_message>& out) {
    out.push_back(std::move(message));
  }

  // -- a trainer --

  /// Called on a compute thread before a gradient at a state of `epoch` is computed, or an
  /// optimizer step. An exception ends the run.
  virtual void before_gradient(std::uint64_t epoch) { (void)epoch; }
  virtual void before_step(std::uint64_t epoch) { (void)epoch; }
  /// The workload that computes a gradient at a state of `epoch`. Called on a compute thread.
  virtual const workload& learns_by(const workload& honest, std::uint64_t epoch) {
    (void)epoch;
    return honest;
  }
  /// A job has computed `samples`. Those that stay in the list count. `first`: they are the first
  /// since the last round.
  virtual void count_samples(std::vector<sample_range>& samples, bool first) {
    (void)samples;
    (void)first;
  }
  /// Whether the trainer changes to the leading branch.
  virtual bool follows(const branch& leading, const branch& own) {
    (void)leading;
    (void)own;
    return true;
  }
  /// A trainer of the synchronous method asks for a round.
  virtual void ask_for_round(round_request& request) { (void)request; }
  /// Whether a trainer adds gradients that a round has averaged to the next round, too.
  virtual bool reuses_gradients() { return false; }

  // -- a member of a group --

  /// Changes the contribution to a round that begins. Requires: the size stays the same.
  virtual void contribute(payload& values, const round_request& request) {
    (void)values;
    (void)request;
  }
  /// Decides the order in which the member serves the others, given as indices.
  virtual void order_members(std::vector<std::uint32_t>& others,
                             const std::vector<member_info>& members) {
    (void)others;
    (void)members;
  }
  // A member of a round that tolerates false values (actors/averaging/guard.hpp).
  /// The member is about to send its commitment to one member.
  virtual void commit(round_commitment& what, std::uint32_t to) {
    (void)what;
    (void)to;
  }
  /// Whether the member contributes false values that have no bits, as in a timing run.
  virtual bool falsifies_sizes() { return false; }
  /// The member is about to sign its scalar products and norms.
  virtual void check_parts(part_checks& what) { (void)what; }
  /// Whether the member reveals its secret, and opens values that a case is about.
  virtual bool reveals() { return true; }
  virtual bool opens() { return true; }
  /// Whether the member computes the contributions again that it was drawn for.
  virtual bool validates() { return true; }
  /// Whether the member says that a contribution is right that it has computed again.
  virtual bool finds_right(const member_info& target, bool right) {
    (void)target;
    return right;
  }
  /// A member that the member accuses without a reason.
  virtual std::optional<std::uint32_t> accuses(const std::vector<member_info>& members) {
    (void)members;
    return {};
  }
  /// The number of votes that the member takes for a majority.
  virtual std::uint32_t votes_needed(std::uint32_t majority) { return majority; }
  /// Whether the group actor stays after no member needs it.
  virtual bool stays_in_group() { return false; }

  // -- a reducer --

  /// The weight that the reducer gives to a member's values.
  virtual double weight_of(std::uint32_t member, double weight) {
    (void)member;
    return weight;
  }
  /// The reducer has reduced a chunk or a part, and is about to send it.
  virtual void reduced(const reduced_unit& what) { (void)what; }

  // -- a node of the DHT --

  /// Whether the node gives readers records that it knows to have expired.
  virtual bool gives_expired_records() { return false; }

  // -- a host that serves layers, a stage of a pipeline, or experts --

  /// The host has computed layers, and is about to send their outputs or the inputs' gradients.
  virtual void computed_layers(std::span<float> outputs) { (void)outputs; }

  // -- a replica of the data shard --

  /// The rows of an update that the replica applies: `rows`, or others, which it writes to `room`.
  virtual std::span<const ledger_row> rows_to_apply(std::span<const ledger_row> rows,
                                                    std::vector<ledger_row>& room) {
    (void)room;
    return rows;
  }
};

/// The honest conduct. It has no state, so all hosts share it.
const std::shared_ptr<conduct>& honest_conduct();

} // namespace shoal::actors
