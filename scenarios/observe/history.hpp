// The hash of a run's history: BLAKE2b-256 over every delivered event, in order. Two runs with the
// same hash delivered the same messages between the same actors at the same times
// (docs/design.md, section 4). An event is hashed as: time (ns), kind, sender and receiver as
// (machine, incarnation, ordinal), wire size, and the message type's name behind its length;
// integers little-endian.
#pragma once

#include "kernels/base/digest.hpp"
#include "scenarios/observe/names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace shoal::scenarios {

class history_hash {
public:
  /// `names` must outlive this.
  explicit history_hash(host_names& names) : names_(names) {}

  void add(const netem::delivered_event& event);
  std::uint64_t events() const noexcept { return events_; }
  /// Of everything so far; adding may go on.
  digest current();

private:
  void flush();

  host_names& names_;
  hasher hash_;
  std::uint64_t events_ = 0;
  std::size_t used_ = 0;
  std::array<std::byte, 4096> buffer_;
};

} // namespace shoal::scenarios
