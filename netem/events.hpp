// The history of an emulated network: delivered events, and records of bulk transfers.
// The fabric (netem/fabric.hpp) reports both to the callbacks in its options.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/ids.hpp"
#include "netem/transfer_model.hpp"

#include <cstdint>
#include <vector>

namespace shoal::netem {

enum class event_kind : std::uint8_t { message, timer, down, host_started, host_killed };

/// One delivered event, in the order of history.
struct delivered_event {
  event_kind kind = event_kind::message;
  duration time{};
  duration sent{}; ///< messages: when the actor sent the message
  endpoint from, to;
  const char* type = "";
  std::uint64_t wire_bytes = 0;
};

/// A transfer has this rate from `at` on.
struct transfer_step {
  duration at{};
  double bits_per_second = 0;
  rate_limit why = rate_limit::link;
  link_id link{};            ///< for rate_limit::link
  std::uint32_t sharers = 0; ///< transfers on that link, this one included
};

/// One bulk transfer, reported when it ends.
struct transfer_record {
  std::uint64_t number = 0; ///< in the order of their beginnings, from 1
  endpoint from, to;
  const char* type = "";
  std::uint64_t bytes = 0;
  duration sent{};  ///< when the actor sent the message
  duration begun{}; ///< when the earlier messages of the connection had left
  duration left{};  ///< when the last byte had left, or the transfer was cut off
  duration arrives{};
  duration round_trip{}; ///< the path's, without jitter
  bool cut = false;      ///< the death of a host ended it
  std::vector<transfer_step> steps;
};

} // namespace shoal::netem
