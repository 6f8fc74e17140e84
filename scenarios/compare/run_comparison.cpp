#include "scenarios/compare/run_comparison.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/schema/diagnostic.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

std::optional<double> some(std::uint64_t value) {
  return static_cast<double>(value);
}

std::optional<double> round_quantile(const run_record& of, double q) {
  const std::vector<double> seconds = of.round_seconds();
  return seconds.empty() ? std::nullopt : std::optional(quantile(seconds, q));
}

std::uint64_t sum(const summary::sent_bytes& of) {
  return of.data + of.averaging + of.state + of.control;
}

/// Seconds from the first step on. The time before depends on when hosts were started, which is not
/// part of a prediction.
std::optional<double> seconds_of_steps(const run_record& of) {
  std::optional<double> first, last;
  for (const auto& [epoch, row] : of.by_epoch) {
    if (epoch == 0 || !row.reached_seconds) continue;
    if (!first) first = row.reached_seconds;
    last = row.reached_seconds;
  }
  return first && *last > *first ? std::optional(*last - *first) : std::nullopt;
}

using run = const run_record&;
// The only list of the lines that every comparison has.
const run_figure definitions[] = {
    {"rounds", "time, mean", "round", figure_unit::seconds, -1,
     [](run r) { return r.rounds.mean_seconds; }},
    {"rounds", "time, median", "median", figure_unit::seconds, -1,
     [](run r) { return round_quantile(r, 0.5); }},
    {"rounds", "time, 90th percentile", "p90", figure_unit::seconds, -1,
     [](run r) { return round_quantile(r, 0.9); }},
    {"rounds", "ok", "ok", figure_unit::count, 0, [](run r) { return some(r.rounds.ok); }},
    {"rounds", "partial", "partial", figure_unit::count, 0,
     [](run r) { return some(r.rounds.partial); }},
    {"rounds", "split", "split", figure_unit::count, -1,
     [](run r) { return some(r.rounds.split); }},
    {"rounds", "failed", "failed", figure_unit::count, -1,
     [](run r) { return some(r.rounds.failed); }},
    {"training", "samples/s", "rate", figure_unit::per_second, 1,
     [](run r) { return r.samples_per_second(); }},
    {"training", "samples", "samples", figure_unit::count, 0,
     [](run r) { return some(r.samples); }},
    {"training", "epochs", "epochs", figure_unit::count, 0, [](run r) { return some(r.epochs); }},
    {"training", "first to last step", "steps", figure_unit::seconds, -1,
     [](run r) { return seconds_of_steps(r); }},
    {"training", "loss, final", "loss", figure_unit::nats, -1, [](run r) { return r.final_loss; }},
    {"sent", "all", "bytes", figure_unit::bytes, -1, [](run r) { return some(sum(r.bytes)); }},
    {"sent", "averaging", "averaging", figure_unit::bytes, -1,
     [](run r) { return some(r.bytes.averaging); }},
    {"sent", "data", "data", figure_unit::bytes, -1, [](run r) { return some(r.bytes.data); }},
    {"sent", "state", "state", figure_unit::bytes, -1, [](run r) { return some(r.bytes.state); }},
    {"sent", "control", "control", figure_unit::bytes, -1,
     [](run r) { return some(r.bytes.control); }},
    {"peers", "joined", "joined", figure_unit::count, 0,
     [](run r) { return some(r.peers.joined); }},
    {"peers", "left", "left", figure_unit::count, 0, [](run r) { return some(r.peers.left); }},
};

compared_loss compare_losses(std::string name, run predicted, run actual,
                             std::optional<double> recorded_epoch::*loss) {
  compared_loss out{std::move(name), {}};
  for (const auto& [epoch, of] : predicted.by_epoch)
    if (const auto found = actual.by_epoch.find(epoch);
        found != actual.by_epoch.end() && of.*loss && found->second.*loss)
      out.points.push_back({epoch, *(of.*loss), *(found->second.*loss)});
  return out;
}

/// Whether the run trains a model. Without a model all losses are 0.
bool learns(run of) {
  return of.final_loss || std::any_of(of.by_epoch.begin(), of.by_epoch.end(), [](const auto& each) {
           return each.second.loss_train.value_or(0) != 0 ||
                  each.second.loss_held_out.value_or(0) != 0;
         });
}

} // namespace

std::optional<double> compared_figure::error() const {
  if (!predicted || !actual) return std::nullopt;
  if (*predicted == *actual) return 0;
  return *predicted == 0 ? std::nullopt
                         : std::optional((*actual - *predicted) / std::abs(*predicted));
}

bool compared_figure::within() const {
  const auto off = error();
  // The factor absorbs rounding errors, so that an error equal to the tolerance is within.
  return off && std::abs(*off) <= *tolerance * (1 + 1e-12);
}

const compared_loss::point& compared_loss::largest() const {
  return *std::max_element(points.begin(), points.end(), [](const point& a, const point& b) {
    return std::abs(a.actual - a.predicted) < std::abs(b.actual - b.predicted);
  });
}

bool run_comparison::within() const {
  return std::all_of(figures.begin(), figures.end(),
                     [](const compared_figure& one) { return !one.judged() || one.within(); });
}

tolerances::tolerances() : by_key_{{"round", 0.1}, {"rate", 0.1}, {"bytes", 0.1}, {"loss", 0.03}} {}

result<tolerances> tolerances::parse(std::span<const std::string> arguments) {
  tolerances out;
  const std::vector<std::string> keys = figure_keys();
  std::map<std::string, std::optional<double>> named;
  for (const std::string& argument : arguments) {
    const std::size_t at = argument.find('=');
    const std::string key = at == std::string::npos ? "" : argument.substr(0, at);
    const std::string text = at == std::string::npos ? argument : argument.substr(at + 1);
    if (at != std::string::npos && std::find(keys.begin(), keys.end(), key) == keys.end()) {
      return failure{
          fmt::format("unknown figure '{}'; {}", key,
                      did_you_mean(key, keys, fmt::format("they are {}", fmt::join(keys, ", "))))};
    }
    if (text == "off" && !key.empty()) {
      named[key] = std::nullopt;
      continue;
    }
    const auto fraction = parse_fraction(text);
    if (!fraction) return failure{fmt::format("'{}': {}", argument, fraction.error())};
    if (!key.empty())
      named[key] = *fraction;
    else
      for (auto& [ignored, allowed] : out.by_key_) allowed = *fraction;
  }
  for (const auto& [key, allowed] : named) out.by_key_[key] = allowed;
  return out;
}

std::optional<double> tolerances::of(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? std::nullopt : found->second;
}

std::span<const run_figure> run_figures() {
  return definitions;
}

std::string figure_text(const std::optional<double>& value, figure_unit unit) {
  if (!value) return "-";
  switch (unit) {
  case figure_unit::seconds:
    return *value < 100 ? fmt::format("{:.3g} s", *value) : fmt::format("{:.0f} s", *value);
  case figure_unit::per_second:
    return fmt::format("{:.4g}", *value);
  case figure_unit::bytes:
    return bytes_text(static_cast<std::uint64_t>(*value));
  case figure_unit::count:
    return fmt::format("{:.0f}", *value);
  case figure_unit::nats:
    return std::abs(*value) < 1000 ? fmt::format("{:.4f}", *value) : fmt::format("{:.5g}", *value);
  }
  return {};
}

std::vector<std::string> figure_keys() {
  std::vector<std::string> out;
  for (const run_figure& one : definitions) out.emplace_back(one.key);
  return out;
}

result<run_comparison> compare_runs(const std::filesystem::path& predicted,
                                    const std::filesystem::path& actual, const tolerances& allowed,
                                    bool force) {
  run_comparison out;
  for (auto [path, into] :
       {std::pair(&predicted, &out.predicted), std::pair(&actual, &out.actual)}) {
    auto read = read_run_record(*path);
    if (!read) return failure{read.error()};
    *into = std::move(*read);
  }
  if (const auto difference = scenarios_differ(out.predicted.yaml, out.actual.yaml)) {
    if (!force)
      return failure{
          fmt::format("'{}' and '{}' are not of one scenario: {}; --force compares all the "
                      "same, and shoal versus compares variants",
                      out.predicted.path, out.actual.path, *difference)};
    out.notes.push_back(fmt::format("the scenarios differ: {}", *difference));
  }
  const provenance &a = out.predicted.made_by, &b = out.actual.made_by;
  if (const auto note = data_differ(a, fmt::format("'{}'", out.predicted.path), b,
                                    fmt::format("'{}'", out.actual.path)))
    out.notes.push_back(*note);
  if (a.until != b.until) out.notes.emplace_back("they were given a different --until");
  for (const run_record* one : {&out.predicted, &out.actual}) {
    out.notes.insert(out.notes.end(), one->notes.begin(), one->notes.end());
    if (one->all_rounds.empty() && one->rounds.mean_seconds)
      out.notes.push_back(fmt::format("'{}' recorded no single rounds (record.events), so it has "
                                      "no median, and its samples/s are "
                                      "those of the whole time",
                                      one->path));
  }
  std::set<std::string> reasons;
  for (const run_record* one : {&out.predicted, &out.actual})
    for (const auto& [reason, count] : one->rounds.by_reason) reasons.insert(reason);
  const auto count_of = [](const run_record& of, const std::string& reason) {
    const auto found = of.rounds.by_reason.find(reason);
    return some(found == of.rounds.by_reason.end() ? 0 : found->second);
  };
  const bool both_learn = learns(out.predicted) && learns(out.actual);
  for (const run_figure& one : definitions) {
    // A prediction of sizes and durations alone (shoal promote) predicts no loss.
    const bool judged = std::string_view(one.key) != "loss" || learns(out.predicted);
    out.figures.push_back({one.section, one.name, one.key, one.unit, one.of(out.predicted),
                           one.of(out.actual), judged ? allowed.of(one.key) : std::nullopt});
    if (std::string_view(one.key) != "failed") continue;
    for (const std::string& reason : reasons)
      out.figures.push_back({"rounds", reason, "reason." + reason, figure_unit::count,
                             count_of(out.predicted, reason), count_of(out.actual, reason),
                             std::nullopt});
  }
  out.losses.push_back(
      compare_losses("train", out.predicted, out.actual, &recorded_epoch::loss_train));
  out.losses.push_back(
      compare_losses("held out", out.predicted, out.actual, &recorded_epoch::loss_held_out));
  std::erase_if(out.losses,
                [&](const compared_loss& one) { return one.points.empty() || !both_learn; });
  return out;
}

namespace {

std::string percent(double fraction) {
  const double value = 100 * fraction;
  if (value == 0) return "0 %";
  return std::abs(value) < 1000 ? fmt::format("{:+.1f} %", value) : fmt::format("{:+.3g} %", value);
}

std::string error_text(const compared_figure& of) {
  const auto error = of.error();
  return error ? percent(*error) : of.predicted && of.actual ? "from 0" : "";
}

std::string run_text(const run_record& of) {
  std::string world = of.world;
  if (of.directories > 0) {
    world = of.nodes == 1 ? "1 node of a cluster" : fmt::format("a cluster of {} nodes", of.nodes);
    if (of.directories > of.nodes) world += fmt::format(", {} processes", of.directories);
  }
  return fmt::format("{} ({}, seed {}, {})", of.path, of.scenario, of.seed, world);
}

std::string loss_difference(const compared_loss::point& at) {
  const double off = at.actual - at.predicted;
  return fmt::format(
      "{:+.4f}{} at epoch {}", off,
      at.predicted == 0 ? "" : fmt::format(" ({})", percent(off / std::abs(at.predicted))),
      at.epoch);
}

} // namespace

std::string to_text(const run_comparison& what, const comparison_style& style) {
  const bool wide = style.columns >= 72;
  const auto coloured = [&](const std::string& text, bool good) {
    return style.colour ? fmt::format("\033[{}m{}\033[0m", good ? 32 : 31, text) : text;
  };
  std::string out = fmt::format("predicted  {}\nactual     {}\n\n", run_text(what.predicted),
                                run_text(what.actual));
  const std::size_t name_width = wide ? 24 : 2;
  out += fmt::format("{:<{}}{:>12}{:>12}{:>11}{:>9}\n", "", name_width, "predicted", "actual",
                     "error", wide ? "allowed" : "");
  while (out.ends_with(" \n")) out.erase(out.size() - 2, 1);
  std::string section;
  for (const compared_figure& one : what.figures) {
    if (one.section != section) out += one.section + "\n";
    section = one.section;
    const std::string name = "  " + one.name;
    std::string line = wide ? fmt::format("{:<{}}", name, name_width)
                            : fmt::format("{}\n{:<{}}", name, "", name_width);
    line += fmt::format("{:>12}{:>12}{:>11}", figure_text(one.predicted, one.unit),
                        figure_text(one.actual, one.unit), error_text(one));
    if (one.judged() && wide)
      line += fmt::format("{:>9}", fmt::format("{:.3g} %", 100 * *one.tolerance));
    if (one.judged()) line += "  " + coloured(one.within() ? "within" : "beyond", one.within());
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  if (!what.losses.empty()) out += "\nloss at equal epochs, actual less predicted\n";
  for (const compared_loss& one : what.losses)
    out += fmt::format("  {}, {} {}\n    largest  {}\n    last     {}\n", one.name,
                       one.points.size(), one.points.size() == 1 ? "epoch" : "epochs",
                       loss_difference(one.largest()), loss_difference(one.points.back()));
  if (!what.notes.empty()) out += "\n";
  for (const std::string& note : what.notes) out += fmt::format("note: {}\n", note);
  std::vector<std::string> within, beyond;
  for (const compared_figure& one : what.figures)
    if (one.judged()) (one.within() ? within : beyond).push_back(one.key);
  out += "\n";
  if (within.empty() && beyond.empty()) return out + "nothing was judged\n";
  if (!within.empty()) out += fmt::format("within what is allowed: {}\n", fmt::join(within, ", "));
  if (!beyond.empty())
    out +=
        coloured(fmt::format("beyond what is allowed: {}", fmt::join(beyond, ", ")), false) + "\n";
  return out;
}

std::string to_json(const run_comparison& what) {
  const auto number = [](const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
  };
  const auto side = [&](const run_record& of) {
    json out;
    out["path"] = of.path;
    out["scenario"] = of.scenario;
    out["seed"] = of.seed;
    out["world"] = of.world;
    out["nodes"] = of.directories > 0 ? json(of.nodes) : json(nullptr);
    const std::vector<double> seconds = of.round_seconds();
    out["round_seconds"] = nullptr;
    if (!seconds.empty()) {
      json& to = out["round_seconds"] = json::object();
      to["count"] = seconds.size();
      for (const auto& [name, q] : {std::pair("min", 0.0),
                                    {"p10", 0.1},
                                    {"p25", 0.25},
                                    {"p50", 0.5},
                                    {"p75", 0.75},
                                    {"p90", 0.9},
                                    {"p99", 0.99},
                                    {"max", 1.0}})
        to[name] = quantile(seconds, q);
    }
    return out;
  };
  json out;
  out["within"] = what.within();
  out["predicted"] = side(what.predicted);
  out["actual"] = side(what.actual);
  out["figures"] = json::array();
  for (const compared_figure& one : what.figures)
    out["figures"].push_back({{"section", one.section},
                              {"name", one.name},
                              {"key", one.key},
                              {"predicted", number(one.predicted)},
                              {"actual", number(one.actual)},
                              {"error", number(one.error())},
                              {"tolerance", number(one.tolerance)},
                              {"judged", one.judged()},
                              {"within", one.judged() ? json(one.within()) : json(nullptr)}});
  out["losses"] = json::array();
  for (const compared_loss& one : what.losses) {
    json points = json::array();
    for (const auto& at : one.points)
      points.push_back({{"epoch", at.epoch}, {"predicted", at.predicted}, {"actual", at.actual}});
    out["losses"].push_back({{"name", one.name},
                             {"largest_at_epoch", one.largest().epoch},
                             {"points", std::move(points)}});
  }
  out["notes"] = what.notes;
  return clean_json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
