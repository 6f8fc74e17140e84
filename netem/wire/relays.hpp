// The links of other hosts that go over this host. Counts relayed bytes against a budget, and
// records the two ends of each link, so that one end hears when the other is gone.
#pragma once

#include "netem/wire/frames.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace shoal::netem::wire {

/// The links that one host may have over a relay, which remembers both directions of each.
inline constexpr std::size_t most_links_relayed = 512;

/// Thread safety: none; the local host's lock guards it.
class relays {
public:
  /// `budget`: the bytes that may be relayed in all; 0: this host is not a relay.
  explicit relays(std::uint64_t budget) : budget_(budget) {}

  bool offered() const noexcept { return budget_ > 0; }
  bool has_budget() const noexcept { return used_ < budget_; }
  bool fits(std::uint64_t bytes) const noexcept { return used_ + bytes <= budget_; }

  /// Records a relayed frame. Returns false if the frame would open one link more than `from` may
  /// have; it must not be passed on then. Requires: fits(bytes).
  bool passed(const node_key& from, const node_key& to, std::uint64_t link, std::uint64_t bytes);
  /// One of the two ends has ended their link.
  void ended(const node_key& one, const node_key& other, std::uint64_t link);
  struct far_end {
    node_key host;
    std::uint64_t link = 0;
  };
  /// Removes the links of `node`, which is gone. Returns their other ends.
  std::vector<far_end> lost(const node_key& node);

  /// The entries that are remembered.
  std::size_t size() const noexcept { return passing_.size(); }

private:
  void forget(const node_key& sender);
  struct passing {
    node_key from, to;
    std::uint64_t link = 0;
    auto operator<=>(const passing&) const = default;
  };
  const std::uint64_t budget_;
  std::uint64_t used_ = 0;
  std::set<passing> passing_;
  std::map<node_key, std::size_t> links_of_; // entries of passing_, by sender
};

} // namespace shoal::netem::wire
