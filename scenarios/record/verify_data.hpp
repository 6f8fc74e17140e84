// Verifies that no sample of a run was lost, or counted twice without a report. ledger.csv must
// account for every issued index exactly once. It must agree, index by index, with rounds.csv,
// which the run records independently of the shard.
//
// rounds.csv says which samples were used, and the ledger is compared with it. The ledger reports
// some indices as `doubtful`: a replica that is gone may have leased or committed them. For these,
// rounds.csv alone says whether one round used them, or several. Neither case is an error, because
// it was reported; both are counted.
//
// Checks:
// 1. The rows of final states are ascending, without gap or overlap, from 0 to the high-water mark
//   of `end`. An `unissued` range ends at the begin of an index block, or is doubtful from the
//   begin of its index block on.
// 2. An index that a round used (rounds.csv, parts_included > 0) is committed or partial with the
//   same epoch, group, peer and parts. Otherwise the ledger reports it as `repeated`, `disputed` or
//   `doubtful`.
// 3. For each committed or partial index, rounds.csv has a round that used it so.
//
// A commit can be under way when a run is stopped. An index of the last epoch that its peer still
// leases counts as in_flight, not as an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct data_report {
  std::uint64_t indices = 0; ///< issued indices
  std::uint64_t committed = 0, partial = 0, leased = 0, returned = 0;
  std::uint64_t repeated_reported = 0, disputed_reported = 0;
  /// Used by one round, and only reported as doubtful in the ledger.
  std::uint64_t doubtful_used = 0;
  /// Used by several rounds. For one of the uses, the ledger has only the doubtful report.
  std::uint64_t doubtful_repeated = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t epochs = 0; ///< epochs with committed or partial samples
  /// Errors as `file:line: text`, at most max_errors of them.
  std::vector<std::string> errors;
  std::size_t errors_left_out = 0;

  static constexpr std::size_t max_errors = 50;
  bool ok() const noexcept { return errors.empty(); }
};

/// Errors: data_report::errors has all of them, also for unreadable files.
data_report verify_data(std::istream& ledger, std::istream& rounds);
/// Reads ledger.csv and rounds.csv of a run directory.
data_report verify_data(const std::string& run_directory);

} // namespace shoal::scenarios
