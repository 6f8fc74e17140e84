#include "scenarios/compare/run_record.hpp"

#include "scenarios/compare/run_nodes.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/record/study_directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;

recorded_round round_of(const nlohmann::json& line) {
  recorded_round out;
  line.at("epoch").get_to(out.epoch);
  line.at("group").get_to(out.group);
  out.started = 1e-9 * line.at("started_ns").get<double>();
  out.ended = 1e-9 * line.at("time_ns").get<double>();
  line.at("members").get_to(out.members);
  line.at("outcome").get_to(out.outcome);
  line.at("reason").get_to(out.reason);
  line.at("first_of_two").get_to(out.first_of_two);
  line.at("samples").get_to(out.samples);
  return out;
}

/// Reads the directory of a whole run.
result<run_record> read_whole(const fs::path& directory) {
  run_record out;
  out.path = directory.string();
  auto yaml = read_run_yaml(directory);
  if (!yaml) return failure{yaml.error()};
  out.yaml = std::move(yaml->options);
  out.made_by = std::move(yaml->made_by);
  auto totals = read_summary(directory);
  if (!totals) return failure{totals.error()};
  out.scenario = totals->scenario;
  out.world = totals->world;
  out.seed = totals->seed;
  out.seconds = totals->virtual_seconds;
  out.epochs = totals->epochs;
  out.samples = totals->samples;
  out.rounds = totals->rounds;
  out.bytes = totals->bytes_sent;
  out.peers = totals->peers;
  out.first_loss = totals->loss.first;
  out.final_loss = totals->loss.final;
  if (out.made_by.interrupted) out.notes.push_back(fmt::format("{} was interrupted", out.path));
  const auto log = read_events(directory, {"round"}, [&](const nlohmann::json& line) {
    out.all_rounds.push_back(round_of(line));
  });
  if (!log) return failure{log.error()};
  std::stable_sort(
      out.all_rounds.begin(), out.all_rounds.end(),
      [](const recorded_round& a, const recorded_round& b) { return a.ended < b.ended; });
  auto epochs = read_epochs(directory);
  if (!epochs) return failure{epochs.error()};
  out.by_epoch = std::move(*epochs);
  return out;
}

bool is_run(const fs::path& directory) {
  return whole_or_partial(directory, "summary.json") || whole_or_partial(directory, "run.yaml") ||
         whole_or_partial(directory, "events.jsonl.zst");
}

} // namespace

std::vector<double> run_record::round_seconds() const {
  std::vector<double> out;
  std::map<std::uint64_t, double> first_halves; // seconds of a step's first round, by epoch
  for (const recorded_round& round : all_rounds) {
    if (!round.completed()) continue;
    const double seconds = round.ended - round.started;
    if (round.first_of_two)
      first_halves[round.epoch] += seconds;
    else
      out.push_back(seconds + std::exchange(first_halves[round.epoch], 0));
  }
  return out;
}

std::optional<double> run_record::samples_per_second() const {
  std::optional<double> first;
  double last = 0;
  std::uint64_t sum = 0;
  for (const recorded_round& round : all_rounds) {
    if (round.samples == 0 || round.first_of_two) continue;
    if (first)
      sum += round.samples;
    else
      first = round.ended;
    last = round.ended;
  }
  if (first && last > *first) return static_cast<double>(sum) / (last - *first);
  return samples > 0 && seconds > 0 ? std::optional(static_cast<double>(samples) / seconds)
                                    : std::nullopt;
}

std::vector<option_difference> options_that_matter(const document& a, const document& b) {
  auto out = diff_options(a, b);
  std::erase_if(out, [](const option_difference& one) {
    return one.path == "world" || one.path == "name" || one.path == "description" ||
           one.path == "data.files" || one.path.starts_with("record.") ||
           one.path.starts_with("expect.");
  });
  return out;
}

std::optional<std::string> scenarios_differ(const document& a, const document& b) {
  const auto all = options_that_matter(a, b);
  if (all.empty()) return std::nullopt;
  const option_difference& one = all.front();
  if (one.a && one.b) return fmt::format("{} is {} and {}", one.path, *one.a, *one.b);
  return fmt::format("only one has {}: {}", one.path, one.a ? *one.a : *one.b);
}

result<std::vector<fs::path>> directories_of_run(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return failure{fmt::format("'{}' is no directory", path.string())};
  if (auto run = require_history(path, "comparison"); !run) return failure{run.error()};
  if (is_run(path)) return std::vector<fs::path>{path};
  std::vector<fs::path> directories;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->is_directory(error) && is_run(entry->path())) directories.push_back(entry->path());
  if (error) return failure{fmt::format("cannot read '{}': {}", path.string(), error.message())};
  if (directories.empty())
    return failure{fmt::format("there is no run in '{}': neither files of one (run.yaml, "
                               "summary.json) nor folders of a cluster's nodes",
                               path.string())};
  std::sort(directories.begin(), directories.end());
  return directories;
}

result<run_record> read_run_record(const fs::path& path) {
  const auto directories = directories_of_run(path);
  if (!directories) return failure{directories.error()};
  if (directories->front() == path) {
    const auto yaml = read_run_yaml(path);
    if (!yaml) return failure{yaml.error()};
    if (yaml->made_by.node.empty()) return read_whole(path);
  }
  return read_nodes(path, *directories);
}

} // namespace shoal::scenarios
