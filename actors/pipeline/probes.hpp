// The points of a stage's peer at which tests let it die.
#pragma once

#include <array>
#include <string_view>

namespace shoal::actors::pipeline_probes {

inline constexpr std::string_view task_received = "pipeline.task_received";
/// The task is computed, and no output was sent.
inline constexpr std::string_view task_computed = "pipeline.task_computed";
inline constexpr std::string_view output_sent = "pipeline.output_sent";
/// A gradient has counted, and the trainer does not know.
inline constexpr std::string_view gradient_counted = "pipeline.gradient_counted";
inline constexpr std::string_view count_confirmed = "pipeline.count_confirmed";

inline constexpr std::array<std::string_view, 5> all{task_received, task_computed, output_sent,
                                                     gradient_counted, count_confirmed};

} // namespace shoal::actors::pipeline_probes
