#include "scenarios/export/recorded_run.hpp"

#include "kernels/base/check.hpp"
#include "scenarios/record/run_files.hpp"
#include "scenarios/record/study_directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace shoal::scenarios {

namespace {

using nlohmann::json;

class collector {
public:
  explicit collector(recorded_run& out) : out_(out) {}

  void event(const json& line) {
    const std::string what = line.at("what");
    const duration at = ns(line.at("time_ns"));
    out_.end = std::max(out_.end, at);
    if (what == "host_started")
      host(line.at("host"));
    else if (what == "host_killed")
      close(host(line.at("host")), at);
    else if (what == "phase_changed")
      phase(line, at);
    else if (what == "round_ended")
      out_.member_rounds.push_back({host(line.at("host")), line.at("outcome"),
                                    ns(line.at("started_ns")), at, line.at("epoch"),
                                    line.at("group"), line.at("reason")});
    else if (what == "round")
      out_.rounds.push_back({line.at("epoch"), line.at("members"), line.at("samples"),
                             line.at("group"), line.at("outcome"), line.at("reason"),
                             ns(line.at("started_ns")), at});
    else if (what == "fault_begins")
      begin_fault(line, at);
    else if (what == "fault_ends")
      end_fault(line, at);
    else if (what == "message")
      message(line, at);
  }

  void transfer(explained_transfer what) {
    host(what.from);
    host(what.to);
    out_.end = std::max(out_.end, what.arrives);
    out_.transfers.push_back(std::move(what));
  }

  /// Ends what is still open at the end of the run.
  void finish() {
    for (const auto& [who, index] : open_) out_.phases[index].end = out_.end;
  }

private:
  std::size_t host(const std::string& actor) {
    const auto name = machine_of(actor);
    const auto [at, fresh] = out_.index_of_host.emplace(name, out_.hosts.size());
    if (fresh) out_.hosts.push_back(name);
    return at->second;
  }

  void close(std::size_t who, duration at) {
    const auto found = open_.find(who);
    if (found == open_.end()) return;
    out_.phases[found->second].end = at;
    open_.erase(found);
  }

  void phase(const json& line, duration at) {
    const auto who = host(line.at("host"));
    close(who, at);
    const std::string name = line.at("phase");
    if (name == "gone") return;
    open_[who] = out_.phases.size();
    out_.phases.push_back({who, name, at, at, line.at("epoch")});
  }

  void begin_fault(const json& line, duration at) {
    recorded_fault what{line.at("action"), {}, at, at};
    for (const auto& name : line.at("hosts")) what.hosts.push_back(name);
    latest_[line.at("fault")] = out_.faults.size();
    out_.faults.push_back(std::move(what));
  }

  void end_fault(const json& line, duration at) {
    const auto found = latest_.find(line.at("fault"));
    if (found != latest_.end()) out_.faults[found->second].end = at;
  }

  void message(const json& line, duration at) {
    host(line.at("from"));
    host(line.at("to"));
    out_.messages.push_back({line.at("from"), line.at("to"), line.at("type"), line.at("bytes"),
                             ns(line.at("sent_ns")), at});
  }

  recorded_run& out_;
  std::map<std::size_t, std::size_t> open_;     // index of the open phase, by host
  std::map<std::uint64_t, std::size_t> latest_; // index of a fault's last strike, by its number
};

} // namespace

std::size_t recorded_run::host_of(const std::string& actor) const {
  const auto found = index_of_host.find(machine_of(actor));
  SHOAL_CHECK(found != index_of_host.end(), "a host of the run");
  return found->second;
}

result<recorded_run> read_recorded_run(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    return failure{fmt::format("no such directory: '{}'", directory.string())};
  if (auto fine = require_history(directory, "history to export"); !fine)
    return failure{fine.error()};
  recorded_run out;
  out.directory = directory;
  auto metrics = read_metrics(directory);
  if (!metrics) return failure{metrics.error()};
  out.metrics = std::move(*metrics);
  if (const auto done = read_summary(directory)) out.name = done->scenario;
  if (out.name.empty()) out.name = directory.filename().string();
  collector all(out);
  const auto events = read_events(directory,
                                  {"host_started", "host_killed", "phase_changed", "round_ended",
                                   "round", "fault_begins", "fault_ends", "message"},
                                  [&](const json& line) { all.event(line); });
  if (!events) return failure{events.error()};
  if (whole_or_partial(directory, "transfers.jsonl.zst")) {
    const auto read =
        read_transfers(directory, [&](explained_transfer what) { all.transfer(std::move(what)); });
    if (!read) return failure{read.error()};
  }
  all.finish();
  return out;
}

} // namespace shoal::scenarios
