// When a host is there: its sessions [start, end) in order, drawn from distributions or replayed from a
// trace (netem/trace.hpp). A process alternates: session, gap, session, gap, ...; lengths are independent.
//   exponential:  P(length <= x) = 1 - exp(-x / mean)
//   weibull:      P(length <= x) = 1 - exp(-(x / scale)^shape),  scale = mean / gamma(1 + 1 / shape)
// Two streams per host, "churn.session:<host>" and "churn.gap:<host>": adding a host, or changing how long
// hosts are away, moves no other draw.
// Source of the model: Nurmi, Brevik and Wolski, "Modeling machine availability in enterprise and wide-area
// distributed computing environments", Euro-Par 2005 (Weibull fits best, with a shape below 1).
// Left out: the first session begins at its start rather than in its middle (no stationary beginning);
// no correlation between hosts, no time of day.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"

namespace shoal::netem {

/// The end of a session that does not end.
inline constexpr duration forever = duration::max();
/// A drawn length is at least this, so that no distribution can fill an instant with events.
inline constexpr duration shortest_lifetime = std::chrono::milliseconds(1);

/// Half open; start < end.
struct session {
  duration start{}, end = forever;
  bool operator==(const session&) const = default;
};

enum class lifetime_kind { always, exponential, weibull };

/// How long something lasts.
struct lifetime {
  lifetime_kind kind = lifetime_kind::always;   ///< always: it never ends
  duration mean{};                              ///< > 0 unless always
  double shape = 1;                             ///< weibull, in [0.1, 100]
  bool operator==(const lifetime&) const = default;
};

/// scale = mean / gamma(1 + 1 / shape), the same bits on every machine. Requires: 0.1 <= shape <= 100.
/// Error: relative 1e-13.
double weibull_scale(double mean, double shape);

/// The sessions of one host, one at a time.
class session_source {
 public:
  /// A process that begins with a session at 0.
  static session_source drawn(std::uint64_t seed, std::string_view host, const lifetime& stay, const lifetime& gap);
  /// `sessions` in order, without overlap. Shared, so that the hosts of a trace keep no copies.
  static session_source replayed(std::shared_ptr<const std::vector<session>> sessions);

  /// The next session; none: it does not come back.
  std::optional<session> next();

 private:
  /// Draws lengths of one lifetime.
  class lengths {
   public:
    lengths(rng draws, const lifetime& what);
    duration next();

   private:
    rng draws_;
    lifetime_kind kind_;
    double scale_, shape_;
  };
  struct process {
    lengths stay, gap;
    duration at{};   // when the next session begins
  };
  struct replay {
    std::shared_ptr<const std::vector<session>> sessions;
    std::size_t at = 0;
  };

  session_source() = default;

  std::optional<process> process_;
  replay replay_;
};

}  // namespace shoal::netem
