// The outcome of a run in figures that mean the same in every world. They come from the directory
// of a whole run (sim, emulate), or from the directories of a cluster's processes (run_nodes.hpp).
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/record/provenance.hpp"
#include "scenarios/record/run_files.hpp"
#include "scenarios/schema/document.hpp"
#include "scenarios/schema/option_diff.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// A round, listed once for all of its members. Times are seconds since the run began.
struct recorded_round {
  std::uint64_t epoch = 0;
  std::string group; ///< 32 hexadecimal digits
  double started = 0, ended = 0;
  std::uint32_t members = 0;
  std::string outcome, reason;
  bool first_of_two = false; ///< the same members average again in a second round
  std::uint64_t samples = 0; ///< samples of the members whose data is in the result

  bool completed() const noexcept { return outcome != "failed"; }
};

struct run_record {
  std::string path;
  std::string scenario, world;
  std::uint64_t seed = 0;
  std::size_t directories = 0; ///< number of directories of a cluster's processes; 0: a whole run
  std::size_t nodes =
      0;         ///< number of hosts; a host that restarted has a directory for each incarnation
  document yaml; ///< the resolved scenario
  provenance made_by;

  double seconds = 0; ///< until the last epoch was reached, or the run ended
  std::uint64_t epochs = 0;
  std::uint64_t samples = 0; ///< samples in completed rounds
  summary::round_totals rounds;
  summary::sent_bytes bytes;
  summary::peer_totals peers;
  std::optional<double> first_loss, final_loss; ///< losses on the held-out text

  /// Rounds in the order of their ends. Empty if none were recorded (record.events: none). If a
  /// sample of peers was recorded (record.peers), only rounds of these peers.
  std::vector<recorded_round> all_rounds;
  std::map<std::uint64_t, recorded_epoch> by_epoch;
  std::vector<std::string> notes; ///< a sentence for each fact that is incomplete

  /// The duration of each completed step's round, in seconds, from the group's beginning to the
  /// last member's end. Two rounds of one step (PowerSGD) count as one.
  std::vector<double> round_seconds() const;
  /// Samples of all rounds after the first, divided by the time from the first round's end to the
  /// last one's. This leaves out the start of the run. With fewer than two recorded rounds: all
  /// samples divided by the whole time. Empty if no round completed.
  std::optional<double> samples_per_second() const;
};

/// The directories of a run: `path` itself, or those of a cluster's processes in it. Errors: there
/// is no run.
result<std::vector<std::filesystem::path>> directories_of_run(const std::filesystem::path& path);

/// `path`: a run directory, or a folder with the run directories of one cluster's processes.
/// Errors: there is no run; a file of the run is damaged; the sub-folders are not of one run.
result<run_record> read_run_record(const std::filesystem::path& path);

/// The options that differ between two runs and may change their outcome.
std::vector<option_difference> options_that_matter(const document& a, const document& b);
/// The first option that differs between two runs and may change their outcome; empty if there is
/// none. The world, the place of the data, what is recorded and what is expected do not count.
std::optional<std::string> scenarios_differ(const document& a, const document& b);

} // namespace shoal::scenarios
