#include "scenarios/compare/replay.hpp"

#include "scenarios/compare/value_diff.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/record/run_files.hpp"
#include "scenarios/record/study_directory.hpp"
#include "scenarios/record/version.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/schema/option_diff.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <utility>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;

/// The options that `file` does not name, with the values that this version gives them.
std::vector<std::string> new_options(const document& file, const scenario& loaded) {
  const auto before = option_values(file), now = option_values(parse_document(to_yaml(loaded)));
  std::vector<std::string> out;
  for (const auto& [path, value] : now)
    if (!before.contains(path))
      out.push_back(fmt::format("run.yaml does not say {}: {} is taken", path, value));
  return out;
}

std::string build_name(std::string_view build) {
  return build.empty() ? "an unknown build" : fmt::format("build {}", build);
}

std::string indented(const std::vector<diagnostic>& errors) {
  std::string out;
  for (const diagnostic& error : errors) out += "\n" + render(error);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

result<run_hashes> hashes_of(const fs::path& summary) {
  auto text = read_file(summary);
  if (!text) return failure{text.error()};
  const auto values = summary_values_of(*text);
  if (!values) return failure{fmt::format("'{}': {}", summary.string(), values.error())};
  const auto find = [&](const char* name) -> std::optional<std::string> {
    const auto found = values->find(name);
    return found == values->end() ? std::nullopt : found->second.text;
  };
  const auto event = find("event_hash");
  if (!event)
    return failure{fmt::format("'{}' has no event_hash to compare with", summary.string())};
  return run_hashes{*event, find("state_hash")};
}

} // namespace

/// The scenario and the origin of a recorded run in sim, for the command `verb` ('replay').
result<replay_plan> read_recorded(const fs::path& directory, std::string_view build,
                                  const char* verb, const char* done) {
  std::error_code error;
  if (!fs::is_directory(directory, error))
    return failure{fmt::format("'{}' is no directory", directory.string())};
  if (auto run = require_history(directory, verb); !run) return failure{run.error()};
  const fs::path file = directory / "run.yaml";
  auto text = read_file(file);
  if (!text) return failure{fmt::format("{}: it is no directory of a finished run", text.error())};
  const document parsed = parse_document(*text);
  auto made_by = provenance_of(parsed);
  if (!made_by) return failure{fmt::format("'{}': {}", file.string(), made_by.error())};

  replay_plan out;
  out.made_by = std::move(*made_by);
  const std::string writer =
      out.made_by.shoal.empty() ? "an unknown version" : "shoal " + out.made_by.shoal;
  const bool other_version = out.made_by.shoal != version();
  auto loaded = load_text(*text, file.string());
  if (!loaded.value)
    return failure{fmt::format(
        "'{}' cannot be {}: {}{}", directory.string(), done,
        other_version
            ? fmt::format("it was made by {}, and this is shoal {}, which does not understand it",
                          writer, version())
            : "its scenario is not right",
        indented(loaded.errors))};
  out.what = std::move(*loaded.value);
  if (out.what.world != "sim")
    return failure{
        fmt::format("'{}' was run in world {}, on the wall clock: only runs in sim repeat exactly",
                    directory.string(), out.what.world)};
  if (!other_version && out.made_by.build != build)
    out.notes.push_back(
        fmt::format("the run was made by {}, and this is {}: they may behave differently",
                    build_name(out.made_by.build), build_name(build)));
  if (other_version) {
    out.notes.push_back(fmt::format("the run was made by {}, and this is shoal {}: where they "
                                    "behave differently, so will the hashes",
                                    writer, version()));
    for (std::string& note : new_options(parsed, out.what)) out.notes.push_back(std::move(note));
  }
  return out;
}

result<replay_plan> plan_replay(const fs::path& directory, std::string_view build) {
  auto out = read_recorded(directory, build, "replay", "replayed");
  if (!out) return out;
  if (out->made_by.interrupted)
    return failure{fmt::format("'{}' was interrupted; a replay cannot end at the same event",
                               directory.string())};
  auto hashes = hashes_of(directory / "summary.json");
  if (!hashes) return failure{hashes.error()};
  out->recorded = std::move(*hashes);
  return out;
}

result<branch_plan> plan_branch(const fs::path& directory, duration from,
                                std::optional<std::uint64_t> seed_after, std::string_view build) {
  auto run = read_recorded(directory, build, "run --from", "continued");
  if (!run) return failure{run.error()};
  auto recorded = read_summary(directory);
  if (!recorded) return failure{recorded.error()};
  const double end = recorded->virtual_seconds;
  if (from >= from_seconds(end))
    return failure{fmt::format("--from {} is not within the run: '{}' ended after {}",
                               to_string(from), directory.string(), seconds_text(end))};
  branch_plan out;
  out.run = std::move(*run);
  for (const run_branch& each : out.run.made_by.branches)
    if (!seed_after || each.at <= from) out.branches.push_back(each);
  if (seed_after) out.branches.push_back({from, *seed_after});
  out.same_future = !seed_after && !out.run.made_by.interrupted;
  if (!recorded->event_hash)
    return failure{fmt::format("'{}' has no event hash", directory.string())};
  out.run.recorded = {*recorded->event_hash, recorded->state_hash};
  return out;
}

result<common_past> compare_past(const fs::path& a, const fs::path& b, duration until) {
  std::ifstream left(a), right(b);
  for (const auto& [file, path] : {std::pair{&left, &a}, std::pair{&right, &b}})
    if (!*file) return failure{fmt::format("cannot read '{}'", path->string())};
  common_past out;
  std::string one, other;
  std::getline(left, one), std::getline(right, other); // the headers
  std::optional<std::string> differs;
  while (std::getline(left, one)) {
    const auto time = one.substr(0, one.find(','));
    if (from_seconds(std::strtod(time.c_str(), nullptr)) >= until) break;
    // The last row before the moment is written by the first event after it, so it does not count.
    if (differs) {
      out.first = differs;
      break;
    }
    if (!std::getline(right, other) || one != other)
      differs = time;
    else
      ++out.rows;
  }
  return out;
}

std::optional<std::string> data_note(const provenance& made_by, const std::string& digest_now) {
  if (made_by.data_digest == digest_now) return std::nullopt;
  if (made_by.data_digest.empty())
    return "the run does not say which training data it had; they may be others now";
  return fmt::format("the training data have changed since the run (digest {} then, {} now): the "
                     "state hash may differ",
                     made_by.data_digest.substr(0, 16),
                     digest_now.empty() ? "none" : digest_now.substr(0, 16));
}

replay_verdict judge_replay(const run_hashes& recorded, const run_hashes& now) {
  replay_verdict out;
  const bool events = recorded.event == now.event, states = recorded.state == now.state;
  const auto line = [&](const char* name, const std::string& then, const std::string& again,
                        bool same) {
    out.text += same ? fmt::format("{} is the same: {}\n", name, then)
                     : fmt::format("{} differs: {} then, {} now\n", name, then, again);
  };
  line("event hash", recorded.event, now.event, events);
  if (recorded.state || now.state)
    line("state hash", recorded.state.value_or("none"), now.state.value_or("none"), states);
  if (events && !states)
    out.text += "the history is the same, the numbers in it are not: other data, another type of "
                "CPU, or other libraries\n";
  out.same = events && states;
  return out;
}

} // namespace shoal::scenarios
