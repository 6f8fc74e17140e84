// Presets of typical computers, for `device:` of a group of peers.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <string_view>

namespace shoal::scenarios {

/// The part of the peak that training reaches, where no measurement says another.
inline constexpr double usual_utilization = 0.3;

struct device_preset {
  std::string_view name;
  double peak;      ///< floating-point operations a second in mixed precision, as published
  double bandwidth; ///< bytes a second of the memory, as published
  double jitter;
  double utilization = usual_utilization; ///< the part of the peak that training reaches
};

/// The names that `device:` knows without an entry of `devices`.
inline constexpr const char* device_names =
    "laptop, desktop, colab, t4, p100, v100, a10, a100, h100, gtx1080ti, rtx3090, rtx4090";

/// Returns the preset called `name`, or null.
const device_preset* find_device(std::string_view name);

/// The speed of `preset` with the model of `work`. A step of Adam reads four numbers of four bytes
/// for each parameter, and writes three.
device_class device_for(const device_preset& preset, const workload_choice& work);

} // namespace shoal::scenarios
