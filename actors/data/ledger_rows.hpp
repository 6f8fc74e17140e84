// A ledger, or what changed in it, as it travels between the replicas of a shard. Clocks differ
// between hosts: a lease says how long it still lasts, and each replica counts from when it reads
// that.
#pragma once

#include "actors/data/messages.hpp"
#include "actors/data/sample_ledger.hpp"
#include "kernels/base/result.hpp"

#include <span>
#include <vector>

namespace shoal::actors {

enum class ledger_row_kind : std::uint8_t {
  leased,
  returned,
  committed,
  partial,
  former,
  repeated,
  disputed,
  doubtful,
  doubt,
  certain
};

std::vector<ledger_row> rows_of(const sample_ledger::changes& what, duration now);
/// All of it: apply_rows() makes the same ledger of an empty one.
std::vector<ledger_row> rows_of(const sample_ledger& what, duration now);

/// Errors: a row that no ledger has. The rows before it are applied.
result<void> apply_rows(std::span<const ledger_row> rows, sample_ledger& to, duration now);

} // namespace shoal::actors
