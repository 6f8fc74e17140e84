// Injected bugs of group members and reducers. Each one shows that a check can fail.
#pragma once

#include "actors/averaging/messages.hpp"
#include "actors/conduct/conduct.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

/// Scales the values of a reduced unit as if they had been divided by `denominator`.
inline void divide_by_instead(const reduced_unit& what, double denominator) {
  const double factor = what.weight / denominator;
  if (factor == 1.0) return;
  for (auto& x : what.values) x = static_cast<float>(x * factor);
}

struct wrong_denominator final : conduct {
  void reduced(const reduced_unit& what) override {
    divide_by_instead(what, static_cast<double>(what.group_weight));
  }
};

struct divide_by_peers final : conduct {
  void reduced(const reduced_unit& what) override {
    divide_by_instead(what, static_cast<double>(what.senders));
  }
};

struct equal_weights final : conduct {
  double weight_of(std::uint32_t, double) override { return 1.0; }
};

struct unordered_peers final : conduct {
  void order_members(std::vector<std::uint32_t>& others,
                     const std::vector<member_info>& members) override {
    // The order of a hash map that is keyed by pointers.
    const auto place = [&](std::uint32_t m) {
      const auto address = reinterpret_cast<std::uintptr_t>(
          caf::actor_cast<caf::abstract_actor*>(members[m].address));
      return (std::uint64_t{address} >> 4) * 0x9e3779b97f4a7c15u >> 20;
    };
    std::sort(others.begin(), others.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
  }
};

struct lone_vote final : conduct {
  std::uint32_t votes_needed(std::uint32_t) override { return 1; }
};

struct leaked_group final : conduct {
  bool stays_in_group() override { return true; }
};

} // namespace shoal::actors
