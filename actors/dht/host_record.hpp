// The record of a host that has one record under each key, as progress, bids and servers have.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/host.hpp"
#include "kernels/base/units.hpp"

#include <string>

namespace shoal::actors {

/// The sub-key of that record, as `withdraw` names it: the host's id in hexadecimal digits.
std::string host_subkey(const host& here);

/// The record, which expires after `lifetime`. `subject` is an actor of the host.
record host_record(const host& here, caf::actor subject, payload value, duration lifetime);

} // namespace shoal::actors
