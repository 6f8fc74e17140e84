#include "scenarios/chaos/inevitable.hpp"

namespace shoal::scenarios {

inevitability
find_inevitable(duration end, duration precision,
                const std::function<std::optional<std::uint64_t>(duration)>& way_out) {
  inevitability out;
  const auto is_open = [&](duration at) {
    ++out.moments;
    const auto seed = way_out(at);
    if (seed) out.last = {at, *seed};
    return seed.has_value();
  };
  if (!is_open(duration{})) return out;
  out.closed = end;
  while (out.closed - out.last->at > precision) {
    const duration middle = out.last->at + (out.closed - out.last->at) / 2;
    if (!is_open(middle)) out.closed = middle;
  }
  return out;
}

} // namespace shoal::scenarios
