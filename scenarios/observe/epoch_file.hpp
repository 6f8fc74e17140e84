// Names of files that a run writes for one epoch, such as checkpoints/epoch-40.ckpt.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shoal::scenarios {

/// The N of a name epoch-N followed by `ending`, such as '.ckpt'; none for other names.
std::optional<std::uint64_t> epoch_of(std::string_view name, std::string_view ending);

} // namespace shoal::scenarios
