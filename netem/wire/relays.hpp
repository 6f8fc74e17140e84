// The links of other hosts that go over this one: how many bytes were passed on, out of a budget,
// and between whom, so that the other end hears when one is gone.
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
  /// `budget`: bytes that may be passed on in all; 0: this host is no relay.
  explicit relays(std::uint64_t budget) : budget_(budget) {}

  bool offered() const noexcept { return budget_ > 0; }
  bool has_budget() const noexcept { return used_ < budget_; }
  bool fits(std::uint64_t bytes) const noexcept { return used_ + bytes <= budget_; }

  /// Notes a frame that is passed on. Requires: it fits.
  void passed(const node_key& from, const node_key& to, std::uint64_t link, std::uint64_t bytes);
  /// One of the two ended their link.
  void ended(const node_key& one, const node_key& other, std::uint64_t link);
  struct far_end {
    node_key host;
    std::uint64_t link = 0;
  };
  /// `node` is gone. The answer: the other ends of its links, which are forgotten.
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
