// The links of other hosts that go over this host. Counts relayed bytes against a budget, and
// records the two ends of each link, so that one end hears when the other is gone.
#pragma once

#include "netem/wire/frames.hpp"

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

namespace shoal::netem::wire {

/// Thread safety: none; the station's lock guards it.
class relays {
public:
  /// `budget`: the bytes that may be relayed in all; 0: this host is not a relay.
  explicit relays(std::uint64_t budget) : budget_(budget) {}

  bool offered() const noexcept { return budget_ > 0; }
  bool has_budget() const noexcept { return used_ < budget_; }
  bool fits(std::uint64_t bytes) const noexcept { return used_ + bytes <= budget_; }

  /// Records a relayed frame. Requires: fits(bytes).
  void passed(const node_key& from, const node_key& to, std::uint64_t link, std::uint64_t bytes);
  /// One of the two ends has ended their link.
  void ended(const node_key& one, const node_key& other, std::uint64_t link);
  struct far_end {
    node_key host;
    std::uint64_t link = 0;
  };
  /// Removes the links of `node`, which is gone. Returns their other ends.
  std::vector<far_end> lost(const node_key& node);

private:
  struct passing {
    node_key from, to;
    std::uint64_t link = 0;
    auto operator<=>(const passing&) const = default;
  };
  const std::uint64_t budget_;
  std::uint64_t used_ = 0;
  std::set<passing> passing_;
};

} // namespace shoal::netem::wire
