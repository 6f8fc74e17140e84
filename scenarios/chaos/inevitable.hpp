// Finds the last moment of a failing history from which another future was possible.
// Bisection over virtual time: the history is repeated up to a moment, and goes on with the random
// numbers of other seeds. If one of these futures is fine, the failure was not inevitable yet.
// Left out: the futures are samples, so a later moment may have a way out that no try takes. A way
// out may also close and open again. Then the result is one of the moments where it closes.
#pragma once

#include "kernels/base/units.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace shoal::scenarios {

struct inevitability {
  /// The last moment from which a future was found that is fine, and its seed. Empty: there is none
  /// even from time 0.
  struct way_out {
    duration at{};
    std::uint64_t seed = 0;
  };
  std::optional<way_out> last;
  duration closed{};    ///< no try from this moment is fine; at most `precision` after `last`
  unsigned moments = 0; ///< number of moments that were tried
};

/// `way_out(t)`: a seed with which the history goes on well from the moment t, or nothing.
/// `end`: a moment from which there is no way out, as the end of the history.
/// Requires: precision > 0. Complexity: log2(end / precision) calls.
inevitability find_inevitable(duration end, duration precision,
                              const std::function<std::optional<std::uint64_t>(duration)>& way_out);

} // namespace shoal::scenarios
