// The dictionary under a key as a reader sees it: the merged records that this node keeps as a
// replica, has read, and owns.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/dht/own_records.hpp"
#include "actors/dht/record_store.hpp"
#include "kernels/base/shared.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::actors {

/// The newest record of each sub-key, ascending, without withdrawn ones. Expired records are left
/// out, unless `expired_too` injects that bug for a test.
std::vector<shared<record>> merge_records(const std::string& key, const record_store& kept,
                                          const record_store& read, const own_records& own,
                                          std::int64_t utc_ns, bool expired_too);

} // namespace shoal::actors
