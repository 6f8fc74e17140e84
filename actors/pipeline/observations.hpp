// Observations of a training pipeline.
#pragma once

#include "actors/ids.hpp"
#include "actors/pipeline/gradient_book.hpp"
#include "kernels/base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// A gradient has counted at a peer of a stage.
struct gradient_counted {
  static constexpr std::string_view observed_as = "gradient_counted";
  std::uint64_t epoch = 0;
  std::uint32_t stage = 0, hop = 0;
  pass_id pass;
  std::uint64_t samples = 0;
  std::string logged_fields() const;
};

/// A peer of a stage has made a step. `own`: the samples times hops that it gave to the round.
/// `counted`: those in the mean, in the part that has the fewest.
struct stage_stepped {
  static constexpr std::string_view observed_as = "stage_stepped";
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0; ///< the new one
  state_id before, after;
  group_id group;
  std::uint64_t own = 0;
  std::uint64_t members = 0;
  std::uint64_t counted = 0;
  std::string logged_fields() const;
};

/// A peer has a downloaded state of a stage.
struct stage_joined {
  static constexpr std::string_view observed_as = "stage_joined";
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0, bytes = 0;
  std::string logged_fields() const;
};

/// No peer had the state of a stage any more. A peer begins anew with the first state, at the epoch
/// of the other stages.
struct stage_lost {
  static constexpr std::string_view observed_as = "stage_lost";
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0;
  std::string logged_fields() const;
};

/// A peer leaves a stage for another one.
struct stage_left {
  static constexpr std::string_view observed_as = "stage_left";
  std::uint32_t from = 0, to = 0;
  std::string logged_fields() const;
};

/// The load of a peer of a stage. The peer has computed for `computed` of the last `over`.
struct stage_worked {
  static constexpr std::string_view observed_as = "stage_worked";
  std::uint32_t stage = 0;
  duration over{}, computed{};
  std::string logged_fields() const;
};

/// A peer has thrown away gradients that had counted, because its stage went on without it.
struct gradients_dropped {
  static constexpr std::string_view observed_as = "gradients_dropped";
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0, samples = 0;
  std::string logged_fields() const;
};

/// The reason for which a trainer gives a task to another peer.
enum class task_failure : std::uint8_t {
  peer_gone,   ///< the peer's host is dead, or no longer reached
  silent,      ///< no answer in time
  other_epoch, ///< the peer has other parameters, or is about to make a step
  other_stage, ///< the peer has moved
  bad_values,  ///< the message holds no such activations
  queue_full,
  not_ready,     ///< the peer has no parameters yet
  gradient_gone, ///< the peer no longer has a gradient that should count
  banned,        ///< an audit has found an output of the peer wrong
};
inline constexpr std::size_t task_failures = 9;
std::string_view to_string(task_failure why) noexcept;

/// A trainer takes a task of a micro-batch away from a peer.
struct stage_task_failed {
  static constexpr std::string_view observed_as = "stage_task_failed";
  std::uint32_t stage = 0, hop = 0;
  bool backward = false;
  std::uint64_t number = 0; ///< the number of the micro-batch
  task_failure why = task_failure::silent;
  std::string logged_fields() const;
};

/// The end of an audit (stage_audit.hpp).
enum class audit_end : std::uint8_t {
  right,      ///< the output
  wrong,      ///< an opinion: `peer`
  disputed,   ///< all opinions differ, and the stage has no other host
  unfinished, ///< the batch ended first, or the stage has one host only
};
inline constexpr std::size_t audit_ends = 4;
std::string_view to_string(audit_end how) noexcept;

/// A trainer has had an output of a stage's host computed again.
struct stage_audited {
  static constexpr std::string_view observed_as = "stage_audited";
  std::uint64_t epoch = 0;
  std::uint32_t stage = 0, hop = 0;
  bool backward = false;
  std::uint64_t number = 0;   ///< the number of the micro-batch
  std::uint64_t opinions = 0; ///< with that of the host that was audited
  audit_end how = audit_end::right;
  peer_id peer = 0; ///< with `wrong`: the host that the trainer bans; one observation for each
  std::string logged_fields() const;
};

/// A trainer has computed its part of a batch.
struct batch_trained {
  static constexpr std::string_view observed_as = "batch_trained";
  std::uint64_t epoch = 0, samples = 0;
  double loss_sum = 0;
  std::uint64_t repeated = 0; ///< hops that were computed again because their peer was lost, before
                              ///< the batch was closed
  bool dropped = false;       ///< a stage had gone on before the part was done
  std::string logged_fields() const;
};

/// A task of a micro-batch that was answered. Times are on the trainer's clock.
struct pass_task {
  std::uint32_t hop = 0, stage = 0;
  bool backward = false;
  peer_id peer = 0;
  duration sent{}, answered{}; ///< times of the last try
  duration computed{};         ///< on the device, by the peer's word
  std::uint32_t tries = 1;
};

/// The micro-batch of a trainer's part of a batch that took the longest.
struct slowest_micro_batch {
  static constexpr std::string_view observed_as = "slowest_micro_batch";
  std::uint64_t epoch = 0, number = 0, samples = 0;
  duration begun{}, done{};     ///< the first task was sent, and every hop has counted
  std::vector<pass_task> tasks; ///< in the order of their answers
  std::string logged_fields() const;
};

/// The model has made the step of a batch, and gradients of these samples of a trainer are in it.
/// `group` names the step. The gradients have counted in `hops_included` hops (stage_model.hpp).
struct batch_stepped {
  static constexpr std::string_view observed_as = "batch_stepped";
  std::uint64_t epoch = 0; ///< the batch's
  group_id group;
  std::vector<sample_range> samples;
  std::uint32_t hops_included = 0, hops_total = 0;
  double loss = 0; ///< the mean loss of the samples
  std::string logged_fields() const;
};

/// A peer has died with gradients of a closed batch. The trainer computes them again.
struct batch_reopened {
  static constexpr std::string_view observed_as = "batch_reopened";
  std::uint64_t epoch = 0;
  std::uint32_t hops = 0;
  std::string logged_fields() const;
};

} // namespace shoal::actors
