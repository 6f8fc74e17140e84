// shoal trace info FILE: statistics of a churn trace. shoal trace convert FILE: the trace in
// another format. shoal trace diff SIM REAL: the histories of two runs, step by step.
#include "kernels/base/json_text.hpp"
#include "kernels/base/stats.hpp"
#include "netem/trace_formats.hpp"
#include "netem/trace_statistics.hpp"
#include "netem/trace_text.hpp"
#include "scenarios/compare/trace_diff.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/terminal.hpp"
#include "tools/trace_picture.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>

namespace shoal::tools {

namespace {

using netem::trace;
using netem::trace_format;
using json = nlohmann::ordered_json;

struct trace_arguments {
  std::string file, format, unit, to, out, svg;
  std::uint64_t seed = 1;
  bool json = false, picture = true;
};

std::optional<trace_format> format_named(const std::string& word, const char* option) {
  if (const auto found = netem::trace_format_of(word)) return found;
  unknown_word(option, "format", word, {"csv", "fta", "simgrid", "counts", "events", "peers"});
  return std::nullopt;
}

/// Prints all errors on stderr. Without a trace, `status` is exit_bad_input or exit_usage.
std::optional<trace> read(const trace_arguments& arguments, trace_format& format, int& status) {
  status = exit_bad_input;
  netem::trace_options how;
  how.seed = arguments.seed;
  how.unit = arguments.unit;
  if (!arguments.format.empty()) {
    how.format = format_named(arguments.format, "--format");
    if (!how.format) return status = exit_usage, std::nullopt;
  }
  const auto fail = [&](const std::string& why) {
    fmt::print(stderr, "{}: error: {}\n", arguments.file, why);
    return std::nullopt;
  };
  const bool piped = arguments.file == "-";
  std::error_code failed;
  if (!piped && std::filesystem::is_directory(arguments.file, failed))
    return fail("is a directory, expected a trace");
  errno = 0;
  std::ifstream file;
  if (!piped) file.open(arguments.file, std::ios::binary);
  if (!file) return fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(piped ? std::cin : file), {});
  } catch (const std::ios_base::failure&) {
    return fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  std::istringstream in(std::move(text));
  if (!how.format) how.format = netem::detect_trace_format(in.view());
  format = *how.format;
  netem::trace_result found =
      netem::read_trace_as(in, std::filesystem::path(arguments.file).stem().string(), how);
  for (const netem::trace_problem& what : found.problems) {
    scenarios::diagnostic made;
    made.file = arguments.file;
    made.line = static_cast<int>(what.line);
    made.column = static_cast<int>(what.column);
    made.length = static_cast<int>(what.length);
    made.message = what.message;
    made.source_line = what.source_line;
    std::fputs(scenarios::render(made).c_str(), stderr);
  }
  if (!found.problems.empty()) {
    if (arguments.format.empty())
      fmt::print(stderr, "note: it was read as '{}'; --format says otherwise\n",
                 netem::name_of(format));
    return std::nullopt;
  }
  status = exit_ok;
  return std::move(found.value);
}

std::string span_text(double seconds) {
  if (seconds >= 3600) return fmt::format("{:.2f} h", seconds / 3600);
  if (seconds >= 60) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.3g} s", seconds);
}

/// The lifetime in the form of a scenario's `session:`.
std::string yaml_of(const netem::lifetime& what) {
  const auto hours = [](double seconds) {
    return seconds >= 36000 ? fmt::format("{:.2f}h", seconds / 3600)
           : seconds >= 600 ? fmt::format("{:.2f}min", seconds / 60)
                            : fmt::format("{:.2f}s", seconds);
  };
  const std::string mean = hours(to_seconds(what.mean));
  switch (what.kind) {
  case netem::lifetime_kind::always:
    break;
  case netem::lifetime_kind::exponential:
    return fmt::format("{{distribution: exponential, mean: {}}}", mean);
  case netem::lifetime_kind::weibull:
    return fmt::format("{{distribution: weibull, mean: {}, shape: {:.3f}}}", mean, what.shape);
  case netem::lifetime_kind::gamma:
    return fmt::format("{{distribution: gamma, mean: {}, shape: {:.3f}}}", mean, what.shape);
  case netem::lifetime_kind::log_normal:
    return fmt::format("{{distribution: log_normal, median: {}, sigma: {:.3f}}}",
                       hours(to_seconds(what.mean) / netem::log_normal_mean(what.shape)),
                       what.shape);
  case netem::lifetime_kind::hyperexponential: {
    std::string phases;
    for (const auto& phase : what.phases)
      phases += fmt::format("{}{{weight: {:.3f}, mean: {}}}", phases.empty() ? "" : ", ",
                            phase.weight, hours(to_seconds(phase.mean)));
    return fmt::format("{{distribution: hyperexponential, phases: [{}]}}", phases);
  }
  }
  return "{distribution: always}";
}

json lengths_json(const std::vector<double>& lengths) {
  json out;
  out["count"] = lengths.size();
  out["mean_s"] = lengths.empty() ? json() : json(mean(lengths));
  out["median_s"] = lengths.empty() ? json() : json(median(lengths));
  out["fits"] = json::array();
  for (const auto& fit : netem::fit_lifetimes(lengths))
    out["fits"].push_back({{"lifetime", yaml_of(fit.what)}, {"ks", fit.ks}});
  return out;
}

void print_lengths(const char* what, const std::vector<double>& lengths) {
  if (lengths.empty()) return fmt::print("  {:<12} none that ended\n", what);
  fmt::print("  {:<12} mean {}, median {}, from {} to {}\n", what, span_text(mean(lengths)),
             span_text(median(lengths)), span_text(quantile(lengths, 0)),
             span_text(quantile(lengths, 1)));
  const auto fits = netem::fit_lifetimes(lengths);
  for (std::size_t i = 0; i < std::min<std::size_t>(fits.size(), 2); ++i)
    fmt::print("  {:<12} {} {}  (KS {:.3f}, n = {})\n", "", i == 0 ? "fits best" : "then     ",
               yaml_of(fits[i].what), fits[i].ks, lengths.size());
}

int info(const trace_arguments& arguments) {
  trace_format format{};
  int status = exit_ok;
  const auto found = read(arguments, format, status);
  if (!found) return status;
  const auto s = netem::statistics_of(*found);
  if (!arguments.svg.empty()) {
    const auto name = std::filesystem::path(arguments.file).filename().string();
    if (auto done = scenarios::write_file(arguments.svg, svg_picture(*found, name)); !done)
      return fail(done.error(), exit_run_failed);
  }
  if (arguments.json) {
    json out;
    out["file"] = arguments.file;
    out["format"] = netem::name_of(format);
    out["peers"] = s.peers;
    out["sessions"] = s.sessions;
    out["endings"] = s.endings;
    out["span_s"] = to_seconds(s.span);
    out["loop_s"] = to_seconds(found->loop());
    out["node_hours"] = s.node_hours;
    out["endings_per_node_hour"] = s.endings_per_node_hour;
    out["availability"] = s.availability;
    out["live"] = {{"fewest", s.fewest}, {"mean", s.mean_live}, {"most", s.most}};
    out["session"] = lengths_json(s.session_lengths);
    out["gap"] = lengths_json(s.gap_lengths);
    out["live_counts"] = json::array();
    for (const auto& [when, live] : netem::live_counts(*found))
      out["live_counts"].push_back({to_seconds(when), live});
    fmt::print("{}\n", json_text(out, 1));
    return exit_ok;
  }
  fmt::print("{} ({})\n", arguments.file, netem::name_of(format));
  fmt::print("  {:<12} {} in {}{}\n", "peers", s.peers, span_text(to_seconds(s.span)),
             found->loop() > duration::zero() ? ", then again from the beginning" : "");
  fmt::print("  {:<12} {}, of which {} ended: {:.3f} for each node-hour\n", "sessions", s.sessions,
             s.endings, s.endings_per_node_hour);
  fmt::print(
      "  {:<12} {} to {}, {:.2f} in the mean; {:.1f} node-hours, {:.1f} % of what there could be\n",
      "live", s.fewest, s.most, s.mean_live, s.node_hours, 100 * s.availability);
  print_lengths("session", s.session_lengths);
  print_lengths("gap", s.gap_lengths);
  if (format == trace_format::counts)
    fmt::print("  Counts name no nodes: which one ends is chosen by --seed {}, and sessions and "
               "gaps follow from that.\n",
               arguments.seed);
  if (arguments.picture)
    fmt::print("\n{}",
               text_picture(*found, std::min<std::size_t>(
                                        terminal_columns(STDOUT_FILENO).value_or(100), 160)));
  return exit_ok;
}

int convert(const trace_arguments& arguments) {
  const auto to = format_named(arguments.to, "--to");
  if (!to) return exit_usage;
  if (*to == trace_format::peers) return fail("--to: 'peers' is written by runs alone", exit_usage);
  trace_format format{};
  int status = exit_ok;
  const auto found = read(arguments, format, status);
  if (!found) return status;
  if (*to == trace_format::simgrid && found->peers().size() != 1)
    return fail(fmt::format("a simgrid profile describes one host, and the trace has {} peers",
                            found->peers().size()));
  if (const auto name = netem::unwritable_name(*found, *to))
    return fail(
        fmt::format("{}: the name {} does not fit into it: rename the peer, or write events",
                    netem::name_of(*to), netem::trace_text::in_quotes(*name)));
  std::ostringstream text;
  netem::write_trace_as(text, *found, *to);
  if (arguments.out.empty()) {
    std::fputs(text.str().c_str(), stdout);
    return exit_ok;
  }
  if (auto done = scenarios::write_file(arguments.out, text.str()); !done)
    return fail(done.error(), exit_run_failed);
  return exit_ok;
}

struct trace_diff_arguments {
  std::string a, b;
  std::size_t most = 5;
  bool json = false;
};

int diff(const trace_diff_arguments& arguments) {
  const auto found = scenarios::diff_traces(arguments.a, arguments.b);
  if (!found) return fail(found.error());
  std::fputs(
      (arguments.json ? scenarios::to_json(*found) : scenarios::to_text(*found, arguments.most))
          .c_str(),
      stdout);
  return exit_ok;
}

void add_input(CLI::App& command, trace_arguments& arguments) {
  command.add_option("FILE", arguments.file, "a trace; -: standard input")
      ->required()
      ->type_name("FILE");
  command
      .add_option("--format", arguments.format,
                  fmt::format("{}; default: as it looks", netem::trace_format_names))
      ->type_name("FORMAT");
  command
      .add_option("--time-unit", arguments.unit,
                  "unit of times without one; default: s, in events ms")
      ->check(CLI::IsMember({"ms", "s", "min", "h"}))
      ->type_name("UNIT");
  command.add_option("--seed", arguments.seed, "which nodes end, in a trace of counts (1)")
      ->type_name("N");
}

} // namespace

void add_trace(CLI::App& app, action& chosen) {
  auto* command =
      app.add_subcommand("trace", "show a churn trace, convert it, or hold two runs' histories "
                                  "against each other");
  command->require_subcommand(1);
  auto arguments = std::make_shared<trace_arguments>();
  auto* show = command->add_subcommand(
      "info", "statistics, the distributions that fit best, and a picture of the sessions");
  add_input(*show, *arguments);
  show->add_flag("--json", arguments->json, "print JSON on stdout");
  show->add_flag("!--no-picture", arguments->picture, "statistics only");
  show->add_option("--svg", arguments->svg, "write the picture here, too")->type_name("FILE");
  show->callback([arguments, &chosen] { chosen = [arguments] { return info(*arguments); }; });
  auto* change = command->add_subcommand("convert", "write a trace in another format");
  add_input(*change, *arguments);
  change->add_option("--to", arguments->to, "csv, fta, simgrid, counts or events")
      ->required()
      ->type_name("FORMAT");
  change->add_option("-o,--out", arguments->out, "default: stdout")->type_name("FILE");
  change->callback([arguments, &chosen] { chosen = [arguments] { return convert(*arguments); }; });
  auto sides = std::make_shared<trace_diff_arguments>();
  auto* compare = command->add_subcommand(
      "diff",
      "two runs step by step, of any worlds: times of the phases, members, bytes, failures");
  compare->add_option("SIM", sides->a, "a run directory, usually of a simulation")
      ->required()
      ->type_name("DIR");
  compare
      ->add_option("REAL", sides->b,
                   "another one, or a folder with the directories of a cluster's nodes")
      ->required()
      ->type_name("DIR");
  compare->add_option("--furthest", sides->most, "how many of the steps furthest apart to show")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1'000'000u));
  compare->add_flag("--json", sides->json, "print JSON on stdout, with all steps");
  compare->footer("'shoal compare' judges the totals of two runs, 'shoal diff' finds the first "
                  "event that differs.");
  compare->callback([sides, &chosen] { chosen = [sides] { return diff(*sides); }; });
}

} // namespace shoal::tools
