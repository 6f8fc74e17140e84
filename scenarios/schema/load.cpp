#include "scenarios/schema/load.hpp"

#include "scenarios/programs/program.hpp"
#include "scenarios/schema/check_churn.hpp"
#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/devices.hpp"
#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/lines.hpp"
#include "scenarios/schema/override.hpp"
#include "scenarios/schema/reader.hpp"
#include "scenarios/workloads/albert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>

namespace shoal::scenarios {
namespace {

constexpr std::size_t most_diagnostics = 100;
constexpr std::size_t longest_line = 1000; // diagnostics do not quote longer lines

/// Fills the options that a group leaves to the preset of its `line`.
void fill_line(peer_group& group, const source_map& sources) {
  const line_preset* preset = find_line(group.line);
  if (preset == nullptr) return;
  const auto fill = [&](const char* key, auto& value, const auto& from) {
    if (!sources.given("peers." + group.name + "." + key)) value = from;
  };
  fill("up", group.up, preset->up);
  fill("down", group.down, preset->down);
  fill("buffer", group.buffer, preset->buffer);
  fill("delay", group.access.delay, preset->access.delay);
  fill("jitter", group.access.jitter, preset->access.jitter);
  fill("distribution", group.access.distribution, preset->access.distribution);
  if (!sources.given("peers." + group.name + ".bursts"))
    fill("loss", group.access.loss, preset->access.loss);
}

/// Adds the devices of presets that groups name and `devices` does not have.
void fill_devices(scenario& what, const source_map& sources) {
  if (!what.program.reads("workload") || !sources.sound("workload")) return;
  for (const peer_group& group : what.peers)
    if (const auto* preset = find_device(group.device);
        preset != nullptr && sources.sound("devices"))
      what.devices.emplace(group.device, device_for(*preset, what.workload));
}

void fill_defaults(scenario& what, const source_map& sources, const std::string& file_name) {
  if (what.name.empty()) what.name = std::filesystem::path(file_name).stem().string();
  if (const auto& complete = what.program.definition().complete) complete(what);
  const std::string first = what.network.regions.empty() ? "" : what.network.regions.front();
  if (what.data.region.empty()) what.data.region = first;
  for (peer_group& group : what.peers) {
    if (group.region.empty()) group.region = first;
    if (!sources.given("peers." + group.name + ".count") && !group.names.empty())
      group.count = group.names.size();
  }
  for (auto& [name, link] : what.network.shared_links)
    if (link.region.empty()) link.region = first;
  for (auto& [name, relay] : what.network.relays)
    if (relay.region.empty()) relay.region = first;
  for (peer_group& group : what.peers) fill_line(group, sources);
  for (peer_group& group : what.peers) fill_churn(group, sources);
  fill_devices(what, sources);
}

/// Makes paths absolute, so that the resolved scenario works from any folder.
void make_absolute(scenario& what, const std::string& folder) {
  for (peer_group& group : what.peers) {
    group.churn.trace = path_from(folder, group.churn.trace);
    group.over_time.trace = path_from(folder, group.over_time.trace);
  }
  for (region_link& link : what.network.links)
    link.over_time.trace = path_from(folder, link.over_time.trace);
  for (auto& [name, link] : what.network.shared_links)
    link.over_time.trace = path_from(folder, link.over_time.trace);
  for (std::string& path : what.data.files) path = path_from(folder, path);
  what.training.start_from = path_from(folder, what.training.start_from);
  if (what.workload.options.holds<albert_options>()) {
    auto& tokenizer = what.workload.as<albert_options>().tokenizer;
    tokenizer = path_from(folder, tokenizer);
  }
}

std::string folder_of(const std::string& file_name) {
  std::error_code error;
  const auto file = std::filesystem::absolute(file_name, error);
  return error ? "." : file.parent_path().string();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

void deliver(std::vector<problem> problems, std::string_view text, const std::string& file_name,
             std::span<const std::string> sets, std::vector<diagnostic>& errors,
             std::vector<diagnostic>& warnings) {
  const auto order = [](const problem& what) {
    return std::tuple(what.where.set, what.where.line, what.where.column, what.other_file,
                      what.there.line, what.there.column, what.message);
  };
  std::stable_sort(problems.begin(), problems.end(),
                   [&](const problem& a, const problem& b) { return order(a) < order(b); });
  // Report a mistake in a value that aliases share once.
  problems.erase(
      std::unique(problems.begin(), problems.end(),
                  [&](const problem& a, const problem& b) { return order(a) == order(b); }),
      problems.end());
  const std::vector<std::string_view> lines = lines_of(text);
  for (problem& what : problems) {
    auto& list = what.warning ? warnings : errors;
    if (list.size() >= most_diagnostics) continue;
    diagnostic made;
    made.message = std::move(what.message);
    made.notes = std::move(what.notes);
    made.warning = what.warning;
    if (!what.other_file.empty()) {
      made.file = what.other_file;
      made.line = what.there.line;
      made.column = what.there.column;
      made.length = what.there.length;
      if (first_bad_byte(what.source_line) == std::string_view::npos)
        made.source_line = std::move(what.source_line);
    } else if (what.where.set >= 0) {
      made.file = "--set " + sets[static_cast<std::size_t>(what.where.set)];
    } else {
      made.file = file_name;
      made.line = what.where.line;
      made.column = what.where.column;
      made.length = what.where.length;
      const auto index = static_cast<std::size_t>(made.line - 1);
      if (index < lines.size() && lines[index].size() <= longest_line &&
          first_bad_byte(lines[index]) == std::string_view::npos)
        made.source_line = lines[index];
    }
    list.push_back(std::move(made));
  }
}

/// Parses `text` and applies `read` to its root. The result has a value unless there are errors.
template <class Out, class Read>
Out checked(std::string_view text, const std::string& file_name, std::span<const std::string> sets,
            Read read) {
  Out out;
  document doc = parse_document(text);
  apply_sets(doc, sets);
  std::vector<problem> problems = std::move(doc.problems);
  if (doc.root) {
    auto made = read(*doc.root, problems);
    if (std::all_of(problems.begin(), problems.end(),
                    [](const problem& what) { return what.warning; }))
      out.value = std::move(made);
  }
  deliver(std::move(problems), text, file_name, sets, out.errors, out.warnings);
  return out;
}

/// Reads a file, up to one byte above the size limit, by which the parser detects a file that is
/// too long. Errors: a folder or an unreadable file.
result<std::string> text_of(const std::string& path, const char* what) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return failure{fmt::format("is a directory, expected {} file", what)};
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure{fmt::format("cannot be read: {}", std::strerror(errno))};
  std::string text(max_file_bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// Applies `of_text` to the text of the file at `path`.
template <class Out, class Read>
Out loaded(const std::string& path, const char* what, Read of_text) {
  const auto text = text_of(path, what);
  if (text) return of_text(*text);
  Out out;
  diagnostic made;
  made.file = path;
  made.message = text.error();
  out.errors.push_back(std::move(made));
  return out;
}

/// Checks the rules of an inventory that describe() cannot express.
void check_inventory(const inventory& what, const source_map& sources,
                     std::vector<problem>& problems) {
  const auto error = [&](const std::string& path, std::string message) {
    problems.push_back({sources.value_at(path), std::move(message), {}});
  };
  if (what.hosts.empty() && sources.sound("hosts"))
    error("hosts", "an inventory needs at least one host");
  std::map<std::string, std::string> at;
  for (const auto& [name, host] : what.hosts) {
    const auto path = "hosts." + name;
    if (!is_plain_name(name))
      problems.push_back({sources.key_at(path),
                          fmt::format("'{}' cannot name a host: use a-z, 0-9, '_' and '-'", name),
                          {}});
    if (!host.address.empty())
      if (const auto [other, fresh] = at.emplace(host.address, name); !fresh)
        error(path + ".address",
              fmt::format(
                  "'{}' and '{}' have one address, {}: two nodes on one machine need two ports",
                  other->second, name, host.address));
    for (const auto& [other, round_trip] : host.delays)
      if (!what.hosts.contains(other))
        problems.push_back({sources.key_at(path + ".delays." + other),
                            fmt::format("there is no host '{}' in this inventory", other),
                            {},
                            true});
  }
}

} // namespace

load_result load_text(std::string_view text, const std::string& file_name,
                      std::span<const std::string> sets) {
  return checked<load_result>(text, file_name, sets,
                              [&](const auto& root, std::vector<problem>& problems) {
                                scenario made;
                                source_map sources;
                                read_scenario(root, made, sources, problems);
                                fill_defaults(made, sources, file_name);
                                const std::string folder = folder_of(file_name);
                                check_scenario(made, sources, folder, problems);
                                make_absolute(made, folder);
                                // Clear the preset, because its numbers are filled in already. A
                                // second load would add the options that this file turned off.
                                for (peer_group& group : made.peers) group.churn.preset.clear();
                                return made;
                              });
}

load_result load(const std::string& path, std::span<const std::string> sets) {
  return loaded<load_result>(path, "a scenario",
                             [&](const std::string& text) { return load_text(text, path, sets); });
}

inventory_result load_inventory_text(std::string_view text, const std::string& file_name) {
  return checked<inventory_result>(text, file_name, {},
                                   [](const auto& root, std::vector<problem>& problems) {
                                     inventory made;
                                     source_map sources;
                                     read_inventory(root, made, sources, problems);
                                     check_inventory(made, sources, problems);
                                     return made;
                                   });
}

inventory_result load_inventory(const std::string& path) {
  return loaded<inventory_result>(path, "an inventory", [&](const std::string& text) {
    return load_inventory_text(text, path);
  });
}

} // namespace shoal::scenarios
