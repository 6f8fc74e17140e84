// Proves from a run directory that no sample was lost or counted twice without being reported:
// ledger.csv must account for every issued index exactly once, and must agree, index by index, with
// rounds.csv, which was recorded independently of the shard.
//
// What was used is what rounds.csv says; the ledger is held against it. A ledger may say that it
// does not know: `doubtful` is what a replica of the shard may have leased or committed of which
// nobody is left who knows. There rounds.csv alone says what became of it: used by one round, or
// again by another one. Neither is an error, because it was reported; both are counted.
//
// Checked:
//  1. The final-state rows are ascending, without gap or overlap, from 0 to the high-water mark of
//  `end`; what is `unissued` ends where an index block begins, or is doubtful from the beginning of
//  its index_block on.
//  2. What a round used (rounds.csv, parts_included > 0) is committed or partial with that epoch,
//  group,
//     peer and parts; or the ledger says `repeated`, `disputed` or `doubtful` for it.
//  3. What is committed or partial was used so by that round of rounds.csv.
// A commit can be on its way when a run is stopped: an index that the last epoch used and that the
// same peer still leases is counted as in_flight, not as an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct data_report {
  std::uint64_t indices = 0; ///< issued
  std::uint64_t committed = 0, partial = 0, leased = 0, returned = 0;
  std::uint64_t repeated_reported = 0, disputed_reported = 0;
  std::uint64_t doubtful_used =
      0; ///< used by one round, and the ledger says only that they are doubtful
  std::uint64_t doubtful_repeated =
      0; ///< used by several, and the ledger says no more of one of them
  std::uint64_t in_flight = 0;
  std::uint64_t epochs = 0; ///< with committed or partial samples
  /// `file:line: what`, at most max_errors of them.
  std::vector<std::string> errors;
  std::size_t errors_left_out = 0;

  static constexpr std::size_t max_errors = 50;
  bool ok() const noexcept { return errors.empty(); }
};

/// Never fails otherwise than by data_report::errors; unreadable files are errors too.
data_report verify_data(std::istream& ledger, std::istream& rounds);
/// Reads ledger.csv and rounds.csv of a run directory.
data_report verify_data(const std::string& run_directory);

} // namespace shoal::scenarios
