// Attacks of a data shard.
#pragma once

#include "actors/conduct/attacks.hpp"

#include <vector>

namespace shoal::actors {

/// Sends each sample backwards, from its last byte to its first. All that a model learns from such
/// samples is wrong: a text runs backwards, and the label of a picture is its first pixel. Copies
/// for validators are changed as well.
struct poisoned_samples final : message_attack {
  poisoned_samples(host& on, conduct_options how);
  void strike(outgoing_message message, std::vector<outgoing_message>& out) override;
};

} // namespace shoal::actors
