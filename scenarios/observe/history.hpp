// The hash of a run's history: BLAKE2b-256 over every delivered event, in order. Two runs with the
// same hash delivered the same messages between the same actors at the same times
// (docs/design.md, section 4). For each event the hash covers these fields:
//   time (ns)
//   kind
//   sender, then receiver: machine, incarnation, ordinal
//   wire size
//   length of the message type's name, then the name
// Integers are little-endian.
#pragma once

#include "kernels/base/digest.hpp"
#include "scenarios/observe/names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace shoal::scenarios {

class history_hash {
public:
  /// Requires: `names` outlives the hash.
  explicit history_hash(host_names& names) : names_(names) {}

  void add(const netem::delivered_event& event);
  std::uint64_t events() const noexcept { return events_; }
  /// The hash of all events so far; further events may follow.
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
