// The points of an inference server at which tests let it die.
#pragma once

#include <array>
#include <string_view>

namespace shoal::actors::inference_probes {

inline constexpr std::string_view step_received = "inference.step_received";
inline constexpr std::string_view batch_begun = "inference.batch_begun";
/// The batch is computed, and no output was sent.
inline constexpr std::string_view batch_computed = "inference.batch_computed";
inline constexpr std::string_view output_sent = "inference.output_sent";

inline constexpr std::array<std::string_view, 4> all{step_received, batch_begun, batch_computed,
                                                     output_sent};

} // namespace shoal::actors::inference_probes
