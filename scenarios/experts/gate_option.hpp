// The option `gate` of mixtures of experts, in workloads and programs.
#pragma once

#include "kernels/learn/mixture_network.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::scenarios {

template <class V>
void describe_gate(V& v, std::string& gate) {
  v.field("gate", gate,
          "the weights of the chosen experts. `softmax`: their softmax over those that answered. "
          "`switch`: the probability of the one chosen expert among all, so `chosen` is 1",
          {.hide_default = true, .one_of = "softmax, switch"});
}

inline learn::gate_kind gate_of(std::string_view gate) {
  return gate == "switch" ? learn::gate_kind::switching : learn::gate_kind::softmax;
}

/// The reason why a gate does not fit so many chosen experts; none if it does.
inline std::optional<std::string> misfit_of(std::string_view gate, std::uint64_t chosen) {
  if (gate != "switch" || chosen == 1) return std::nullopt;
  return "a switch gate sends each row to one expert: chosen has to be 1";
}

} // namespace shoal::scenarios
