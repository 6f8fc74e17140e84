// The names of the transfer models, and of the reasons that limit a transfer's rate.
// netem/transport.hpp defines the models.
#pragma once

#include <cstdint>

namespace shoal::netem {

enum class transfer_model : std::uint8_t { max_min, lv08, tcp };

/// The reason for a transfer's rate at some time. `cut`: no byte gets through.
enum class rate_limit : std::uint8_t {
  connecting,
  latency,
  slow_start,
  window,
  max_window,
  loss,
  cap,
  link,
  cut
};
const char* name_of(rate_limit why);

} // namespace shoal::netem
