// The experts of a mixture over time. Each has its hosts, its use, and the steps that no copy has
// yet. A plain state machine.
#pragma once

#include "scenarios/observe/run_listener.hpp"
#include "scenarios/page/time_bins.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

class expert_grid {
public:
  static constexpr std::size_t most_experts = 4096, most_holds = 8;

  /// The layer of an expert, then its coordinates.
  using place = std::vector<std::uint32_t>;

  /// A stretch of time in which a host holds an expert.
  struct hold {
    std::int64_t from = 0;
    std::optional<std::int64_t> to; ///< none: it still does
    std::uint32_t host = 0;
    bool revived = false, died = false; ///< died: the hold ended with its host
    std::uint64_t steps = 0;            ///< when the hold began
  };
  /// Sums in each bin. Steps that were lost with a host count as negative ones.
  enum sum : std::size_t { rows, steps, copied, sums };
  struct one {
    time_bins<sums> bins;
    std::deque<hold> holds; ///< the latest ones, by their beginning
    std::uint64_t rows = 0, requests = 0, deaths = 0, revivals = 0;
    std::uint64_t steps = 0;
    std::uint64_t copied = 0; ///< steps of the freshest copy
  };

  /// News of an expert, from this host. Requires: axis.reach(time) was called. Names that are no
  /// place are ignored, and so are experts beyond `most_experts`.
  void hears(const time_axis& axis, std::int64_t time, std::uint32_t host,
             const heard_expert& what);
  /// The host has ended, and with it the experts that it held.
  void gone(std::int64_t time, std::uint32_t host);
  void widen();

  const std::map<place, one>& all() const noexcept { return experts_; }

private:
  std::map<place, one> experts_;
};

} // namespace shoal::scenarios
