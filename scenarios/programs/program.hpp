// The program of a scenario file: training, unless the file has the section of another program.
// Each program is one file in this folder that makes a program_definition, and one line in
// scenarios/programs/all.cpp. The schema, the commands and the readers of run directories ask the
// definition, never its name.
//
// A program without `run` runs on the runner. Its hosts are the groups of `peers`, each with the
// role that the group names. Its run has a history, which can be replayed, compared, swept, and
// shown on the page. A program with `run` runs by itself, and leaves a summary and charts.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/programs/program_run.hpp"
#include "scenarios/schema/reader.hpp"
#include "scenarios/schema/registry.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// `name` is the key of the program's section, and the options stand in that section. The default
/// program has no options and no section.
struct program_definition : kind_definition {
  std::string title; ///< in messages: 'a training run'
  /// Other top-level keys that the program reads; empty: all. The resolved scenario has only these.
  std::vector<std::string> sections;
  std::string alone; ///< why other sections are refused, as a part of a sentence
  /// Fills in defaults that depend on other options. May be empty.
  std::function<void(scenario&)> complete;
  /// Appends what the descriptions of the options cannot say. `folder`: where relative paths begin.
  std::function<void(const scenario&, const source_map&, const std::string& folder,
                     std::vector<problem>&)>
      check;
  /// Sums up a sound scenario for `shoal check`: '4 peers, 2 faults'.
  std::function<std::string(const scenario&)> outline;
  /// On the runner: the epoch with which the run is over; 0: only `stop_time` ends the run. May be
  /// empty, as if 0.
  std::function<std::uint64_t(const scenario&)> last_epoch;
  /// Runs the program without the runner. Errors: a defect of Shoal, or what only a run can find
  /// out. Empty: the runner runs the program.
  std::function<result<program_outcome>(const scenario&, const program_hooks&)> run;

  bool on_runner() const noexcept { return run == nullptr; }
};

/// All programs; the first one is the default.
registry<program_definition>& programs();

} // namespace shoal::scenarios
