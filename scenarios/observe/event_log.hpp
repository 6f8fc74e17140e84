// events.jsonl.zst: the log of a run, one JSON object a line, compressed as it is written.
//
// With `rounds` the log holds hosts that started or were killed, and the observations round_ended,
// stepped, adopted, phase_changed, reach_learned, misbehaved and samples_reported. With `all` it
// also holds each delivered event. A sample of hosts keeps the logs of large runs small.
//
// In whole view each final round has a line, too, if one of its members is logged. In local view
// the log has the contributions of the host's own member, and the senders of each round's result.
// scenarios/compare/run_nodes.hpp combines the logs of several hosts.
//
// Times are integers (virtual nanoseconds), so that two logs can be compared byte by byte.
//   {"time_ns":5,"what":"message","sent_ns":1,"from":"home-3#0/2","to":"home-4#1/0","type":"part_chunk","bytes":40}
//   {"time_ns":7,"what":"round_ended","host":"home-3","epoch":2,"group":"…","outcome":"ok","reason":"none",…}
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/observe/json_lines.hpp"
#include "scenarios/observe/names.hpp"
#include "scenarios/observe/rounds.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace shoal::actors {
class observation;
} // namespace shoal::actors

namespace shoal::scenarios {

/// `count` of `machines`, chosen by `seed`, in ascending order; all machines if count is 0.
std::vector<std::uint32_t> sample_machines(std::uint64_t seed, std::vector<std::uint32_t> machines,
                                           std::uint64_t count);

class event_log {
public:
  /// Logs to `file` with the detail `detail`. Unless `everyone`, delivered events are logged only
  /// where one end is on one of `machines`, and observations only of these machines.
  event_log(std::unique_ptr<output_file> file, event_detail detail, host_names& names,
            bool everyone, const std::vector<std::uint32_t>& machines,
            observed_view view = observed_view::whole);
  ~event_log();

  void on_event(const netem::delivered_event& event);
  /// `machine`: empty for a host without a peer; the observations of such a host are always logged.
  void on_observation(duration time, std::optional<std::uint32_t> machine, std::string_view host,
                      const actors::observation& what);

  void on_fault(duration time, std::size_t number, const char* action, bool begins,
                const std::vector<std::string>& hosts);

  /// A round is final. Writes nothing in local view, nor if no member is logged.
  void on_round(const swarm_round& what);

  /// Makes the lines so far readable from the file, even if the process is killed later.
  void flush();
  /// The first error so far, if any (disk full, say). The run may stop early because of it.
  const std::optional<failure>& error() const noexcept;
  /// Ends the compressed stream and gives the file its final name.
  result<void> close();

private:
  bool watched(std::uint32_t machine) const { return everyone_ || machines_.contains(machine); }
  bool watched(const netem::endpoint& where);

  json_lines lines_;
  std::string current_; // the line being built
  event_detail detail_;
  host_names& names_;
  bool everyone_;
  observed_view view_;
  std::unordered_set<std::uint32_t> machines_; // membership only, never iterated
};

/// Reads an events.jsonl.zst line by line.
class event_log_reader {
public:
  /// Errors: the file cannot be opened.
  static result<event_log_reader> open(const std::filesystem::path& path);
  event_log_reader(event_log_reader&&) noexcept;
  event_log_reader& operator=(event_log_reader&&) noexcept;
  ~event_log_reader();

  /// Reads the next line without its newline. Returns false at the end.
  /// Errors: the file is damaged or cut off.
  result<bool> next(std::string& line);

private:
  struct state;
  explicit event_log_reader(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

} // namespace shoal::scenarios
