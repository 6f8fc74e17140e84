// The name of an expert.
#pragma once

#include "kernels/expert_gate.hpp"

#include <compare>
#include <cstdint>

namespace shoal::actors {

using kernels::expert_place;

/// An expert of a model: its layer, and its place on the layer's grid.
struct expert_id {
  std::uint32_t layer = 0;
  expert_place place;
  auto operator<=>(const expert_id&) const = default;
};

} // namespace shoal::actors
