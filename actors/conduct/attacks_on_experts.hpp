// Attacks of a host that holds experts of a mixture. `wrong_layers` (attacks.hpp) is another one.
#pragma once

#include "actors/conduct/attacks.hpp"

#include <vector>

namespace shoal::actors {

/// Sends false copies of its experts, with which others revive the experts when the host dies.
struct false_copies final : message_attack {
  false_copies(host& on, conduct_options how);
  void strike(outgoing_message message, std::vector<outgoing_message>& out) override;
};

} // namespace shoal::actors
