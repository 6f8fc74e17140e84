// A ledger, or changes of one, in the form that replicas send each other. Clocks differ between
// hosts, so a lease is sent with its remaining time, which counts from the receipt.
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
  uncertain,
  settled
};

std::vector<ledger_row> rows_of(const sample_ledger::changes& what, duration now);
/// The whole ledger. apply_rows() makes an equal ledger from these rows and an empty one.
std::vector<ledger_row> rows_of(const sample_ledger& what, duration now);

/// Errors: a row that no correct ledger has. The rows before it are applied.
result<void> apply_rows(std::span<const ledger_row> rows, sample_ledger& to, duration now);

} // namespace shoal::actors
