// The keys with which a member of a real swarm signs.
#pragma once

#include "netem/wire/signing_key.hpp"
#include "scenarios/runner/world.hpp"

#include <memory>
#include <string>

namespace shoal::scenarios {

/// Requires: `key` is not null and belongs to `certificate`.
member_keys member_keys_of(std::string name, std::shared_ptr<const netem::wire::signing_key> key,
                           std::string certificate);

} // namespace shoal::scenarios
