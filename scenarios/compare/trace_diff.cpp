#include "scenarios/compare/trace_diff.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/compare/run_comparison.hpp"
#include "scenarios/compare/run_nodes.hpp"
#include "scenarios/observe/output_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr std::array<const char*, 4> kinds{"data", "averaging", "state", "control"};

/// A time in which a host was in one phase, in seconds since the run began.
struct phase_span {
  std::string what;
  double begin = 0, end = 0;
};

/// The record of one process, with the start of its times.
struct process_trace {
  double began = 0; ///< seconds since the first process of the run began
  std::vector<phase_span> phases;
  metric_table metrics;
  std::array<std::optional<std::size_t>, 4> columns;

  /// Bytes of a kind that were sent before `time`.
  double bytes(std::size_t kind, double time) const {
    const auto column = columns[kind];
    if (!column || metrics.rows.empty()) return 0;
    const auto at = [](const auto& row) { return row.front().value_or(0); };
    const auto value = [&](const auto& row) { return row[*column].value_or(0); };
    time -= began;
    const auto after = std::lower_bound(metrics.rows.begin(), metrics.rows.end(), time,
                                        [&](const auto& row, double t) { return at(row) < t; });
    if (after == metrics.rows.end()) return value(metrics.rows.back());
    if (after == metrics.rows.begin()) return at(*after) == time ? value(*after) : 0;
    const auto& before = *std::prev(after);
    const double share = (time - at(before)) / (at(*after) - at(before));
    return value(before) + share * (value(*after) - value(before));
  }
};

result<process_trace> read_process(const fs::path& directory, double began) {
  process_trace out;
  out.began = began;
  auto metrics = read_metrics(directory);
  if (!metrics) return failure{metrics.error()};
  out.metrics = std::move(*metrics);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    out.columns[i] = out.metrics.column(fmt::format("bytes_{}", kinds[i]));
  if (!whole_or_partial(directory, "events.jsonl.zst")) return out;
  std::map<std::string, std::size_t> open; // index of a host's current phase
  double last = began;
  const auto close = [&](const std::string& host, double at) {
    const auto found = open.find(host);
    if (found == open.end()) return;
    out.phases[found->second].end = at;
    open.erase(found);
  };
  const auto read = read_events(directory, {"phase_changed", "host_killed", "round_ended", "round"},
                                [&](const nlohmann::json& line) {
                                  const std::string what = line.at("what");
                                  const double at = began + 1e-9 * line.at("time_ns").get<double>();
                                  last = std::max(last, at);
                                  if (what == "round_ended" || what == "round") return;
                                  const auto host = machine_of(line.at("host").get<std::string>());
                                  close(host, at);
                                  if (what == "host_killed" || line.at("phase") == "gone") return;
                                  open[host] = out.phases.size();
                                  out.phases.push_back({line.at("phase"), at, at});
                                });
  if (!read) return failure{read.error()};
  for (const auto& [host, index] : open) out.phases[index].end = last;
  return out;
}

result<std::vector<process_trace>> read_processes(const fs::path& path) {
  const auto directories = directories_of_run(path);
  if (!directories) return failure{directories.error()};
  std::vector<std::pair<fs::path, std::int64_t>> starts;
  for (const fs::path& directory : *directories) {
    if (!whole_or_partial(directory, "run.yaml")) continue; // read_run_record() says so
    const auto yaml = read_run_yaml(directory);
    if (!yaml) return failure{yaml.error()};
    const bool node = !yaml->made_by.node.empty();
    starts.emplace_back(directory, node ? yaml->made_by.started_utc_ns.value_or(0) : 0);
  }
  if (starts.empty())
    return failure{fmt::format("no folder in '{}' has a run.yaml", path.string())};
  const auto first = std::min_element(starts.begin(), starts.end(),
                                      [](const auto& a, auto& b) { return a.second < b.second; });
  std::vector<process_trace> out;
  for (const auto& [directory, start] : starts) {
    auto one = read_process(directory, to_seconds(duration(start - first->second)));
    if (!one) return failure{one.error()};
    out.push_back(std::move(*one));
  }
  return out;
}

/// Shares the time of a step among the phases of the hosts that were there.
void add_phases(const std::vector<process_trace>& processes, step_trace& into) {
  double all = 0;
  for (const auto& process : processes)
    for (const phase_span& span : process.phases) {
      const double both = std::min(span.end, into.end) - std::max(span.begin, into.begin);
      if (both <= 0) continue;
      into.phases[span.what] += both;
      all += both;
    }
  for (auto& [name, seconds] : into.phases) seconds *= into.seconds() / all;
}

struct figure_of_step {
  const char* section;
  std::string name;
  const char* unit;
  std::function<double(const step_trace&)> of;
};

std::vector<figure_of_step>
figures_of(const std::vector<std::pair<step_trace, step_trace>>& steps) {
  std::vector<figure_of_step> out{
      {"time of a step", "all", "s", [](const step_trace& s) { return s.seconds(); }},
      {"time of a step", "until the group closes", "s", [](const step_trace& s) { return s.wait; }},
      {"time of a step", "round", "s", [](const step_trace& s) { return s.round; }}};
  std::set<std::string> phases;
  for (const auto& [a, b] : steps)
    for (const step_trace* one : {&a, &b})
      for (const auto& [name, seconds] : one->phases) phases.insert(name);
  for (const auto& name : phases)
    out.push_back({"a host is", name, "s", [name](const step_trace& s) {
                     const auto found = s.phases.find(name);
                     return found == s.phases.end() ? 0 : found->second;
                   }});
  out.push_back({"rounds of a step", "rounds", "",
                 [](const step_trace& s) { return static_cast<double>(s.rounds); }});
  out.push_back({"rounds of a step", "members", "",
                 [](const step_trace& s) { return static_cast<double>(s.members); }});
  out.push_back({"rounds of a step", "samples", "",
                 [](const step_trace& s) { return static_cast<double>(s.samples); }});
  for (std::size_t i = 0; i < kinds.size(); ++i)
    out.push_back(
        {"sent in a step", kinds[i], "bytes", [i](const step_trace& s) { return s.bytes[i]; }});
  return out;
}

traced_figure traced(const figure_of_step& what,
                     const std::vector<std::pair<step_trace, step_trace>>& steps) {
  traced_figure out{what.section, what.name, what.unit};
  std::vector<double> a, b, ratios;
  for (const auto& [left, right] : steps) {
    a.push_back(what.of(left));
    b.push_back(what.of(right));
    if (a.back() > 0) ratios.push_back(b.back() / a.back());
  }
  out.a = median(a);
  out.b = median(b);
  if (ratios.empty()) return out;
  out.ratio = median(ratios);
  out.low = quantile(ratios, 0.05);
  out.high = quantile(ratios, 0.95);
  return out;
}

std::string world_of(const run_record& of) {
  if (of.directories == 0) return of.world;
  return of.nodes == 1 ? "1 node of a cluster" : fmt::format("cluster of {} nodes", of.nodes);
}

std::string value_text(double value, const std::string& unit) {
  return figure_text(value, unit == "s"       ? figure_unit::seconds
                            : unit == "bytes" ? figure_unit::bytes
                                              : figure_unit::per_second);
}

std::string round_text(const step_trace& of) {
  return fmt::format("{}, {} members, {}{}", value_text(of.seconds(), "s"), of.members, of.outcome,
                     of.reason == "none" || of.reason.empty() ? "" : " (" + of.reason + ")");
}

} // namespace

result<std::vector<step_trace>> read_steps(const run_record& of) {
  const auto processes = read_processes(of.path);
  if (!processes) return failure{processes.error()};
  std::map<std::uint64_t, std::vector<const recorded_round*>> by_epoch;
  for (const recorded_round& round : of.all_rounds) by_epoch[round.epoch].push_back(&round);
  std::vector<step_trace> out;
  double end = 0;
  for (const auto& [epoch, rounds] : by_epoch) {
    step_trace step;
    step.epoch = epoch;
    step.begin = end;
    step.rounds = rounds.size();
    double began = 0;
    for (const recorded_round* round : rounds) {
      if (!round->completed() || round->ended < step.end) continue;
      step.end = round->ended;
      began = round->started;
      step.outcome = round->outcome;
      step.reason = round->reason;
    }
    // With groups, rounds of different epochs overlap. A step that ends before the one before it
    // has no time of its own.
    if (step.end <= step.begin) continue;
    for (const recorded_round* round : rounds)
      if (round->completed() && !round->first_of_two) {
        step.members += round->members;
        step.samples += round->samples;
      }
    step.wait = std::max(began - step.begin, 0.0);
    step.round = step.seconds() - step.wait;
    add_phases(*processes, step);
    for (const auto& process : *processes)
      for (std::size_t i = 0; i < kinds.size(); ++i)
        step.bytes[i] += process.bytes(i, step.end) - process.bytes(i, step.begin);
    end = step.end;
    out.push_back(std::move(step));
  }
  return out;
}

std::vector<std::size_t> trace_difference::furthest(std::size_t most) const {
  std::vector<std::size_t> out(steps.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
  const auto distance = [&](std::size_t i) {
    return std::abs(steps[i].second.seconds() - steps[i].first.seconds());
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](std::size_t x, std::size_t y) { return distance(x) > distance(y); });
  out.resize(std::min(out.size(), most));
  return out;
}

result<trace_difference> diff_traces(const fs::path& a, const fs::path& b) {
  trace_difference out;
  std::vector<step_trace> steps[2];
  for (const auto& [path, into, own] :
       {std::tuple(&a, &out.a, &steps[0]), std::tuple(&b, &out.b, &steps[1])}) {
    auto record = read_run_record(*path);
    if (!record) return failure{record.error()};
    *into = std::move(*record);
    auto found = read_steps(*into);
    if (!found) return failure{found.error()};
    if (found->empty())
      return failure{fmt::format("'{}' has no step to compare: no round was completed, or "
                                 "record.events is none",
                                 path->string())};
    *own = std::move(*found);
    out.notes.insert(out.notes.end(), into->notes.begin(), into->notes.end());
  }
  out.name_a = out.a.world == out.b.world ? "A" : out.a.world;
  out.name_b = out.a.world == out.b.world ? "B" : out.b.world;
  if (const auto difference = scenarios_differ(out.a.yaml, out.b.yaml))
    out.notes.push_back(fmt::format("the scenarios differ: {}", *difference));
  std::size_t at = 0;
  for (const step_trace& left : steps[0]) {
    while (at < steps[1].size() && steps[1][at].epoch < left.epoch) ++at;
    if (at < steps[1].size() && steps[1][at].epoch == left.epoch)
      out.steps.emplace_back(left, steps[1][at]);
  }
  // The first step has the start of the hosts in it, which is an operator's affair.
  if (out.steps.size() > 1) {
    out.steps.erase(out.steps.begin());
    out.notes.emplace_back("the first step has the start of the hosts in it and is left out");
  }
  if (out.steps.empty())
    return failure{fmt::format("'{}' and '{}' have no epoch in common", a.string(), b.string())};
  for (const auto& one : figures_of(out.steps)) out.figures.push_back(traced(one, out.steps));
  return out;
}

std::string to_text(const trace_difference& what, std::size_t most) {
  std::string out;
  for (const auto& [name, run] : {std::pair(&what.name_a, &what.a), {&what.name_b, &what.b}})
    out += fmt::format("{:<10} {} ({}, seed {}, {})\n", *name, run->path, run->scenario, run->seed,
                       world_of(*run));
  out += fmt::format("\n{} {} that both have; medians\n", what.steps.size(),
                     what.steps.size() == 1 ? "step" : "steps");
  out += fmt::format("{:<28}{:>12}{:>12}{:>9}   {}\n", "", what.name_a, what.name_b, "ratio",
                     "90 % of the steps");
  std::string section;
  for (const traced_figure& one : what.figures) {
    if (one.section != section) out += one.section + "\n";
    section = one.section;
    out += fmt::format("  {:<26}{:>12}{:>12}", one.name, value_text(one.a, one.unit),
                       value_text(one.b, one.unit));
    if (one.ratio)
      out += fmt::format("{:>9.2f}   {:.2f} to {:.2f}", *one.ratio, *one.low, *one.high);
    out += "\n";
  }
  out += fmt::format("\n{:<28}{:>12}{:>12}\n", "rounds of the whole run", what.name_a, what.name_b);
  const auto line = [&](const std::string& name, std::uint64_t a, std::uint64_t b) {
    out += fmt::format("  {:<26}{:>12}{:>12}\n", name, a, b);
  };
  const auto &a = what.a.rounds, &b = what.b.rounds;
  line("ok", a.ok, b.ok);
  line("partial", a.partial, b.partial);
  line("split", a.split, b.split);
  line("failed", a.failed, b.failed);
  std::set<std::string> reasons;
  for (const auto* one : {&a, &b})
    for (const auto& [reason, count] : one->by_reason) reasons.insert(reason);
  const auto count = [](const auto& of, const std::string& reason) {
    const auto found = of.by_reason.find(reason);
    return found == of.by_reason.end() ? 0 : found->second;
  };
  for (const auto& reason : reasons) line("  " + reason, count(a, reason), count(b, reason));
  const auto far = what.furthest(most);
  if (!far.empty()) out += "\nsteps furthest apart\n";
  for (const std::size_t i : far) {
    const auto& [left, right] = what.steps[i];
    out += fmt::format("  epoch {:<6} {}\n  {:<12} {}\n", left.epoch, round_text(left), "",
                       round_text(right));
  }
  if (!what.notes.empty()) out += "\n";
  for (const auto& note : what.notes) out += fmt::format("note: {}\n", note);
  return out;
}

std::string to_json(const trace_difference& what) {
  const auto side = [](const run_record& of) {
    return json{{"path", of.path},
                {"scenario", of.scenario},
                {"seed", of.seed},
                {"world", of.world},
                {"ok", of.rounds.ok},
                {"partial", of.rounds.partial},
                {"split", of.rounds.split},
                {"failed", of.rounds.failed},
                {"by_reason", of.rounds.by_reason}};
  };
  const auto step = [](const step_trace& of) {
    json out{{"begin", of.begin},     {"end", of.end},         {"wait", of.wait},
             {"round", of.round},     {"rounds", of.rounds},   {"members", of.members},
             {"samples", of.samples}, {"outcome", of.outcome}, {"reason", of.reason},
             {"phases", of.phases}};
    for (std::size_t i = 0; i < kinds.size(); ++i) out["bytes"][kinds[i]] = of.bytes[i];
    return out;
  };
  const auto number = [](const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
  };
  json out;
  out["a"] = side(what.a);
  out["b"] = side(what.b);
  out["figures"] = json::array();
  for (const traced_figure& one : what.figures)
    out["figures"].push_back({{"section", one.section},
                              {"name", one.name},
                              {"unit", one.unit},
                              {"a", one.a},
                              {"b", one.b},
                              {"ratio", number(one.ratio)},
                              {"low", number(one.low)},
                              {"high", number(one.high)}});
  out["steps"] = json::array();
  for (const auto& [left, right] : what.steps)
    out["steps"].push_back({{"epoch", left.epoch}, {"a", step(left)}, {"b", step(right)}});
  out["notes"] = what.notes;
  return clean_json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
