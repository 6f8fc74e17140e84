// The names of the transfer models and of the reasons why a transfer is as fast as it is.
// netem/transport.hpp says what each model does.
#pragma once

#include <cstdint>

namespace shoal::netem {

enum class transfer_model : std::uint8_t { max_min, lv08, tcp };

/// Why a transfer is as fast as it is at some time. `cut`: nothing gets through.
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
