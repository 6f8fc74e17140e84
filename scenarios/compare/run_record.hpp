// What a run came to, in figures that mean the same in every world: read from the run directory of
// a whole run (sim, emulate), or put together from those of the processes of a cluster
// (run_nodes.hpp).
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/record/provenance.hpp"
#include "scenarios/record/run_files.hpp"
#include "scenarios/schema/document.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// A round, once for all of its members. Times in seconds since the run began.
struct recorded_round {
  std::uint64_t epoch = 0;
  std::string group; ///< 32 hexadecimal digits
  double started = 0, ended = 0;
  std::uint32_t members = 0;
  std::string outcome, reason;
  bool first_of_two = false; ///< a second round of the same members follows it
  std::uint64_t samples = 0; ///< of the members whose data is in the result

  bool completed() const noexcept { return outcome != "failed"; }
};

struct run_record {
  std::string path;
  std::string scenario, world;
  std::uint64_t seed = 0;
  std::size_t directories = 0; ///< of a cluster's processes; 0: one of a whole run
  std::size_t nodes = 0;       ///< hosts among these: a restarted one has a directory for each life
  document yaml;               ///< the resolved scenario
  provenance made_by;

  double seconds = 0; ///< until the last epoch was reached, or the run ended
  std::uint64_t epochs = 0;
  std::uint64_t samples = 0; ///< in completed rounds
  summary::round_totals rounds;
  summary::sent_bytes bytes;
  summary::peer_totals peers;
  std::optional<double> first_loss, final_loss; ///< held out

  /// In the order of their ends. Empty if none were recorded (record.events: none); of a sample of
  /// peers only theirs (record.peers).
  std::vector<recorded_round> all_rounds;
  std::map<std::uint64_t, recorded_epoch> by_epoch;
  std::vector<std::string> notes; ///< what is incomplete, a sentence each

  /// Seconds of each step's round that somebody completed, from the group's beginning to its last
  /// member's end; two that follow each other (PowerSGD) are one.
  std::vector<double> round_seconds() const;
  /// Samples of the rounds after the first one, divided by the time from that one's end to the last
  /// one's; where no rounds were recorded, or one, all samples by all the time. Starting up is not
  /// in it. Nothing if nothing was completed.
  std::optional<double> samples_per_second() const;
};

/// `path`: a run directory, or a folder whose sub-folders are those of the processes of one
/// cluster. Errors: there is no run; a file in it is damaged; the sub-folders are not of one run.
result<run_record> read_run_record(const std::filesystem::path& path);

/// The first option that two runs have different and that could make them come out differently;
/// nothing if there is none. Which world it is, where the data lies, what is recorded and what is
/// expected could not.
std::optional<std::string> scenarios_differ(const document& a, const document& b);

} // namespace shoal::scenarios
