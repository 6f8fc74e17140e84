// Observations of experts and of their trainers.
#pragma once

#include "actors/experts/expert_record.hpp"
#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// Why a server refuses a request.
enum class expert_refusal : std::uint8_t {
  none,
  unknown_expert, ///< the server does not hold it, or holds it no more
  too_many,       ///< too many requests wait
  wrong_values,   ///< rows of another size, or values that are not finite
  stale,          ///< the expert has made too many steps since the forward pass
  too_large,      ///< a trainer's own word: the answer is far larger than those of other hosts
};
const char* to_string(expert_refusal why) noexcept;

/// A server holds an expert from now on. `steps`: of the copy from which it was revived.
struct expert_held {
  static constexpr std::string_view observed_as = "expert_held";
  expert_id which;
  std::uint64_t steps = 0;
  bool revived = false;
  std::string logged_fields() const;
};

/// A server gave up an expert, because another host holds a fresher one.
struct expert_given_up {
  static constexpr std::string_view observed_as = "expert_given_up";
  expert_id which;
  std::uint64_t steps = 0;
  std::string logged_fields() const;
};

/// A server has computed a batch.
struct expert_batch_done {
  static constexpr std::string_view observed_as = "expert_batch_done";
  expert_id which;
  bool backward = false;
  std::uint64_t requests = 0, rows = 0;
  std::uint64_t staleness = 0; ///< in a backward pass: the sum over its requests
  std::uint64_t steps = 0;     ///< that the expert has made, this batch's included
  duration queued{}, time{};   ///< the longest wait of a request, and the computing
  std::string logged_fields() const;
};

/// A server has sent copies of these experts to other servers. Those that have not changed since
/// their last copy are left out.
struct experts_copied {
  static constexpr std::string_view observed_as = "experts_copied";
  struct copy {
    expert_id which;
    std::uint64_t steps = 0;
  };
  std::vector<copy> copies;
  std::string logged_fields() const;
};

/// A server answered a repeated request from its log.
struct expert_repeat_answered {
  static constexpr std::string_view observed_as = "expert_repeat_answered";
  std::uint64_t request = 0;
};

/// A trainer got no answer from an expert. `why` none: the host died, or was silent.
struct expert_call_lost {
  static constexpr std::string_view observed_as = "expert_call_lost";
  expert_id which;
  peer_id host = 0;
  bool backward = false;
  expert_refusal why = expert_refusal::none;
  const char* reason() const noexcept;
  std::string logged_fields() const;
};

/// A host of experts knows that the swarm is at another epoch. It holds so many experts, and so
/// many copies of those of others.
struct experts_followed {
  static constexpr std::string_view observed_as = "experts_followed";
  std::uint64_t epoch = 0;
  std::uint64_t experts = 0, copies = 0;
  std::string logged_fields() const;
};

/// A trainer has put the whole model together: its own trunk, and copies of all experts. `missing`
/// experts had no host that answered, so they are as the trainer knew them before.
struct model_gathered {
  static constexpr std::string_view observed_as = "model_gathered";
  std::uint64_t epoch = 0;
  std::uint64_t experts = 0, missing = 0, bytes = 0;
  duration time{};
  std::string logged_fields() const;
};

/// A trainer has made a step.
struct expert_step {
  static constexpr std::string_view observed_as = "expert_step";
  std::uint64_t step = 0;
  double loss = 0;
  std::uint64_t calls = 0, lost = 0;
  std::uint64_t unanswered = 0; ///< rows and layers in which no expert answered
  std::uint64_t look_ups = 0;
  duration time{}, look_up_time{}; ///< look_up_time: spent waiting for the DHT
  duration waiting_time{};         ///< spent waiting for experts
  /// The call that took the longest; empty: none was answered.
  std::optional<expert_id> slowest;
  bool slowest_backward = false;
  duration slowest_began{}, slowest_time{};
  std::string logged_fields() const;
};

/// A trainer has measured the network with samples that it does not learn from.
struct expert_evaluated {
  static constexpr std::string_view observed_as = "expert_evaluated";
  std::uint64_t step = 0;
  double loss = 0;
  std::uint64_t right = 0, rows = 0;
  std::string logged_fields() const;
};

} // namespace shoal::actors
