#include "scenarios/compare/run_diff.hpp"

#include "kernels/base/json_text.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/record/provenance.hpp"
#include "scenarios/record/study_directory.hpp"
#include "scenarios/schema/hosts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

struct recorded_run {
  fs::path directory;
  summary_values values;
  document yaml;
  std::map<std::string, std::string> options;
  provenance made_by;

  std::string option(const std::string& path) const {
    const auto found = options.find(path);
    return found == options.end() ? "" : found->second;
  }
  /// The number of peers whose events were recorded; '0' means all peers.
  std::string sample() const {
    const std::string peers = option("record.peers");
    return peers.empty() ? "0" : peers;
  }
};

result<recorded_run> read_run(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error))
    return failure{fmt::format("'{}' is no directory", directory.string())};
  if (auto run = require_history(directory, "diff"); !run) return failure{run.error()};
  if (!fs::exists(directory / "run.yaml", error) && !fs::exists(directory / "summary.json", error))
    return failure{
        fmt::format("'{}' is no directory of a run: it has neither run.yaml nor summary.json",
                    directory.string())};
  recorded_run out;
  out.directory = directory;
  auto summary = read_file(directory / "summary.json");
  if (!summary) return failure{summary.error()};
  auto values = summary_values_of(*summary);
  if (!values)
    return failure{fmt::format("'{}': {}", (directory / "summary.json").string(), values.error())};
  out.values = std::move(*values);
  auto yaml = read_file(directory / "run.yaml");
  if (!yaml) return failure{yaml.error()};
  out.yaml = parse_document(*yaml);
  if (!out.yaml.root)
    return failure{
        fmt::format("'{}': {}", (directory / "run.yaml").string(),
                    out.yaml.problems.empty() ? "it is empty" : out.yaml.problems.front().message)};
  out.options = option_values(out.yaml);
  auto made_by = provenance_of(out.yaml);
  if (!made_by)
    return failure{fmt::format("'{}': {}", (directory / "run.yaml").string(), made_by.error())};
  out.made_by = std::move(*made_by);
  return out;
}

/// The value of a key in a mapping on one line, like '{kill: machine, select: x}'. on_one_line()
/// writes such lines.
std::string key_of_line(const std::string& line, const std::string& key) {
  for (const std::string& before : {"{" + key + ": ", ", " + key + ": "})
    if (const std::size_t at = line.find(before); at != std::string::npos) {
      const std::size_t begin = at + before.size();
      return line.substr(begin, line.find_first_of(",}", begin) - begin);
    }
  return {};
}

/// The fault that only one side has and that selects `host`; empty unless there is exactly one.
std::string fault_behind(const run_difference& in, bool in_b, const std::string& host) {
  std::string found;
  for (const option_difference& option : in.options) {
    const auto& text = in_b ? option.b : option.a;
    if (option.path != "faults" || !text || !glob_match(key_of_line(*text, "select"), host))
      continue;
    if (!found.empty()) return {};
    found = *text;
  }
  return found;
}

std::string headline_of(const run_difference& of) {
  const first_event first = first_effect(*of.history);
  const char* there = first.in_b ? "B" : "A";
  const char* elsewhere = first.in_b ? "A" : "B";
  std::string out = fmt::format("{} in {} at {}, and not in {}", event_words(first.line), there,
                                event_time(first.line), elsewhere);
  const std::string host = host_changed(first.line);
  if (host.empty()) return out;
  if (const std::string fault = fault_behind(of, first.in_b, host); !fault.empty())
    out += fmt::format("\n  the first effect of a fault that only {} has: {}", there, fault);
  return out;
}

result<void> compare_histories(const recorded_run& a, const recorded_run& b, run_difference& out) {
  const std::string detail_a = a.option("record.events"), detail_b = b.option("record.events");
  for (const auto& [name, detail] : {std::pair("A", detail_a), std::pair("B", detail_b)})
    if (detail == "none") {
      out.notes.push_back(fmt::format(
          "{} recorded no events; run it with --set record.events=all to see where they diverge",
          name));
      return {};
    }
  const bool sampled = a.sample() != "0" || b.sample() != "0";
  const bool same_sample = a.sample() == b.sample() && a.option("seed") == b.option("seed");
  if (sampled && !same_sample) {
    out.notes.emplace_back("A and B recorded events of different peers (record.peers, seed), so "
                           "their events are not compared");
    return {};
  }
  if (sampled)
    out.notes.push_back(
        fmt::format("only events of {} peers were recorded (record.peers)", a.sample()));
  out.finest = detail_a == "all" && detail_b == "all";
  auto differ = diff_histories(a.directory / "events.jsonl.zst", b.directory / "events.jsonl.zst",
                               !out.finest);
  if (!differ) return failure{differ.error()};
  out.history_compared = true;
  out.history = std::move(*differ);
  const auto hash_differs =
      std::any_of(out.metrics.begin(), out.metrics.end(),
                  [](const value_difference& x) { return x.name == "event_hash"; });
  if (!out.finest && (out.history || hash_differs))
    out.notes.push_back(fmt::format(
        "{} recorded only rounds and hosts: single messages show with --set record.events=all",
        detail_a == "all"   ? "B"
        : detail_b == "all" ? "A"
                            : "A and B"));
  return {};
}

} // namespace

result<run_difference> diff_runs(const fs::path& a, const fs::path& b) {
  auto left = read_run(a);
  if (!left) return failure{left.error()};
  auto right = read_run(b);
  if (!right) return failure{right.error()};
  run_difference out;
  out.a = a.string();
  out.b = b.string();
  out.options = diff_options(left->yaml, right->yaml);
  out.metrics = diff_values(left->values, right->values);
  if (left->made_by.shoal != right->made_by.shoal)
    out.notes.push_back(
        fmt::format("A was made by shoal {}, B by {}", left->made_by.shoal, right->made_by.shoal));
  if (const auto note = data_differ(left->made_by, "A", right->made_by, "B"))
    out.notes.push_back(*note);
  if (left->made_by.until != right->made_by.until)
    out.notes.emplace_back("A and B were given a different --until");
  if (left->made_by.branches != right->made_by.branches) {
    const auto seeds = [](const recorded_run& run) {
      return run.made_by.branches.empty() ? std::string("nothing") : to_text(run.made_by.branches);
    };
    out.notes.push_back(fmt::format("A and B branch differently (x-run.seed_after): {} and {}",
                                    seeds(*left), seeds(*right)));
  }
  for (const auto& [name, run] : {std::pair("A", &*left), std::pair("B", &*right)})
    if (run->made_by.interrupted) out.notes.push_back(fmt::format("{} was interrupted", name));
  if (auto done = compare_histories(*left, *right, out); !done) return failure{done.error()};
  if (out.history) out.headline = headline_of(out);
  return out;
}

namespace {

void add_events(std::string& out, const char* mark, const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    out += fmt::format("  {} {:>20}  {}\n", mark, event_time(line), event_words(line));
}

/// A value as text. A hash is cut to its first digits, which suffice to tell two hashes apart.
std::string short_text(const value_difference& of, const std::optional<summary_value>& value) {
  std::string text = to_text(value);
  return of.name.ends_with("_hash") ? text.substr(0, 16) : text;
}

std::string change(const value_difference& what) {
  const auto relative = what.relative();
  return relative ? fmt::format("  {:+.4g} %", *relative * 100) : "";
}

bool is_count_of_checks(const value_difference& what) {
  return what.name.starts_with("invariants.") && what.name.ends_with(".checked");
}

} // namespace

std::string to_text(const run_difference& what) {
  std::string out = fmt::format("A is {}\nB is {}\n", what.a, what.b);
  if (what.history) {
    const divergence& at = *what.history;
    out += fmt::format("\n{}\n", what.headline);
    out += fmt::format("\nevents ({} {} the same before):\n", at.common,
                       at.common == 1 ? "is" : "are");
    add_events(out, " ", at.before);
    add_events(out, "A", at.a);
    if (at.a.empty()) out += "  A ends here\n";
    add_events(out, "B", at.b);
    if (at.b.empty()) out += "  B ends here\n";
  } else if (what.history_compared) {
    out += fmt::format("\nthe recorded events are the same\n");
  }
  if (!what.metrics.empty()) out += "\nsummary.json (A, B):\n";
  std::size_t checks = 0;
  for (const value_difference& one : what.metrics) {
    if (is_count_of_checks(one))
      ++checks;
    else
      out += fmt::format("  {:<34} {:>16} {:>16}{}\n", one.name, short_text(one, one.a),
                         short_text(one, one.b), change(one));
  }
  if (checks > 0) out += fmt::format("  and how often {} invariants were checked\n", checks);
  if (!what.options.empty()) out += "\noptions (A, B):\n";
  for (const option_difference& one : what.options) {
    if (one.a && one.b)
      out += fmt::format("  {:<34} {:>16} {:>16}\n", one.path, *one.a, *one.b);
    else
      out += fmt::format("  {:<34} only in {}: {}\n", one.path, one.a ? "A" : "B",
                         one.a ? *one.a : *one.b);
  }
  if (!what.notes.empty()) out += "\n";
  for (const std::string& note : what.notes) out += fmt::format("note: {}\n", note);
  out += what.same() ? "\nthe runs are the same\n" : "";
  return out;
}

std::string to_json(const run_difference& what) {
  const auto events = [](const std::vector<std::string>& lines) {
    json out = json::array();
    for (const std::string& line : lines) {
      json one = try_json<json>(line);
      out.push_back(one.is_discarded() ? json(line) : one);
    }
    return out;
  };
  const auto value = [](const std::optional<summary_value>& from) -> json {
    if (!from || (!from->number && !from->text)) return nullptr;
    return from->number ? json(*from->number) : json(*from->text);
  };
  const auto text = [](const std::optional<std::string>& from) {
    return from ? json(*from) : json(nullptr);
  };
  json out;
  out["a"] = what.a;
  out["b"] = what.b;
  out["same"] = what.same();
  out["history_compared"] = what.history_compared;
  out["detail"] = !what.history_compared ? json(nullptr) : json(what.finest ? "all" : "rounds");
  out["divergence"] = nullptr;
  if (what.history)
    out["divergence"] = {{"headline", what.headline},
                         {"common", what.history->common},
                         {"before", events(what.history->before)},
                         {"a", events(what.history->a)},
                         {"b", events(what.history->b)}};
  out["metrics"] = json::array();
  for (const value_difference& one : what.metrics) {
    const auto relative = one.relative();
    out["metrics"].push_back({{"name", one.name},
                              {"a", value(one.a)},
                              {"b", value(one.b)},
                              {"relative", relative ? json(*relative) : json(nullptr)}});
  }
  out["options"] = json::array();
  for (const option_difference& one : what.options)
    out["options"].push_back({{"path", one.path}, {"a", text(one.a)}, {"b", text(one.b)}});
  out["notes"] = what.notes;
  return clean_json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
