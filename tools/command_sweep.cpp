// shoal sweep FILE --vary PATH=VALUES: runs a scenario over a grid of options and seeds, and makes
// one table of it.
#include "kernels/base/text_fields.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/record/run_files.hpp"
#include "scenarios/record/version.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/sweep/cells.hpp"
#include "scenarios/sweep/plan.hpp"
#include "scenarios/sweep/slurm_array.hpp"
#include "scenarios/sweep/table.hpp"
#include "tools/arguments.hpp"
#include "tools/build_identity.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/progress_bar.hpp"
#include "tools/sweep_page.hpp"
#include "tools/terminal.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;
using namespace scenarios;

struct sweep_arguments {
  std::string file, seeds, out, part, program = "shoal";
  std::vector<std::string> sets, vary, metrics;
  std::size_t jobs = 0;
  bool json = false, quiet = false, slurm = false;
};

/// The cells with number `index` modulo `of`.
struct part {
  std::size_t index = 0, of = 1;
};

std::optional<part> part_of(const std::string& text) {
  const auto parts = split(text, '/');
  if (parts.size() != 2) return std::nullopt;
  const auto index = number_of<std::size_t>(parts[0]), of = number_of<std::size_t>(parts[1]);
  if (!index || !of || *index >= *of) return std::nullopt;
  return part{*index, *of};
}

/// A sweep whose points are all valid, with further facts about them.
struct sound_sweep {
  sweep_plan plan;
  checked_plan checked;
  fs::path directory;
};

/// Loads every point. Prints the errors of the first invalid one.
bool check(sound_sweep& what) {
  what.checked = check_points(what.plan);
  print_diagnostics(what.checked.errors);
  print_diagnostics(what.checked.warnings);
  if (what.checked.errors.empty()) return true;
  if (!what.plan.vary.empty())
    fmt::print(stderr, "note: in the cells with {}; nothing was run\n",
               what.plan.label_of(what.checked.wrong_point));
  return false;
}

/// Makes the plan from the command line. Returns exit_ok, or another status after printing the
/// error.
int plan_from(const sweep_arguments& arguments, sound_sweep& into) {
  auto& plan = into.plan;
  plan.scenario = fs::absolute(arguments.file).lexically_normal().string();
  plan.sets = arguments.sets;
  plan.metrics = arguments.metrics;
  for (const auto& text : arguments.vary) {
    auto varied = parse_varied(text);
    if (!varied) return fail(fmt::format("--vary {}: {}", text, varied.error()), exit_usage);
    plan.vary.push_back(std::move(*varied));
  }
  if (!arguments.seeds.empty()) {
    auto seeds = parse_seeds(arguments.seeds);
    if (!seeds) return fail("--seeds " + arguments.seeds + ": " + seeds.error(), exit_usage);
    plan.seeds = std::move(*seeds);
    for (const auto& set : plan.sets)
      if (set.starts_with("seed=")) return fail("the seed is both set and swept", exit_usage);
  }
  if (const auto sound = check_grid(plan); !sound) return fail(sound.error(), exit_usage);
  if (!check(into)) return exit_bad_input;
  if (plan.seeds.empty()) plan.seeds = {into.checked.seed};
  plan.digest = into.checked.digest;
  plan.build = fmt::format("{} ({})", version(), build_identity());
  into.directory =
      arguments.out.empty() ? fs::path(arguments.file).stem().string() + ".sweep" : arguments.out;
  return exit_ok;
}

/// The plan of a directory in which a sweep has begun.
result<sweep_plan> recorded_plan(const fs::path& directory) {
  const auto text = read_file(directory / "sweep.yaml");
  if (!text) return failure{text.error()};
  auto plan = read_plan(*text);
  if (!plan)
    return failure{fmt::format("'{}' is no plan of a sweep: {}",
                               (directory / "sweep.yaml").string(), plan.error())};
  return plan;
}

/// Prints the difference between the directory's sweep and this one. Returns the exit status.
int compare_with_recorded(const sweep_plan& recorded, sound_sweep& now) {
  const auto resolved = read_file(now.directory / "scenario.yaml");
  if (!resolved) return fail(resolved.error());
  if (const auto other = difference(recorded, *resolved, now.plan, now.checked.first_scenario))
    return fail(fmt::format("'{}' has another sweep: {}; give another --out, or remove that one",
                            now.directory.string(), *other));
  if (recorded.build != now.plan.build)
    fmt::print(stderr,
               "warning: the sweep in {} was begun by shoal {}, this is {}: cells of both may not "
               "be alike\n",
               now.directory.string(), recorded.build, now.plan.build);
  if (now.plan.metrics.empty()) now.plan.metrics = recorded.metrics;
  return exit_ok;
}

/// Continues a sweep from its directory, which has everything except the columns of the table.
int plan_of_directory(const sweep_arguments& arguments, sound_sweep& into) {
  if (arguments.out.empty() || !arguments.vary.empty() || !arguments.seeds.empty() ||
      !arguments.sets.empty())
    return fail("give a scenario, or only --out with the folder of a sweep to go on with",
                exit_usage);
  into.directory = arguments.out;
  const auto recorded = recorded_plan(into.directory);
  if (!recorded) return fail(recorded.error());
  into.plan = *recorded;
  into.plan.metrics = arguments.metrics;
  into.plan.build = fmt::format("{} ({})", version(), build_identity());
  if (!check(into)) return exit_bad_input;
  into.plan.digest = into.checked.digest;
  return compare_with_recorded(*recorded, into);
}

/// Creates a directory with the plan in it, or accepts one with the same plan. Returns exit_ok, or
/// another status after printing the error.
int take_directory(sound_sweep& what) {
  std::error_code error;
  const auto& to = what.directory;
  if (fs::exists(to / "sweep.yaml", error)) {
    const auto recorded = recorded_plan(to);
    return recorded ? compare_with_recorded(*recorded, what) : fail(recorded.error());
  }
  if (fs::exists(to, error) && (!fs::is_directory(to, error) || !fs::is_empty(to, error)))
    return fail(fmt::format("'{}' exists and is no sweep (it has no sweep.yaml)", to.string()));
  fs::create_directories(to, error);
  if (error) return fail(fmt::format("cannot make '{}': {}", to.string(), error.message()));
  for (const auto& [name, text] :
       {std::pair{"scenario.yaml", "# The first point, resolved.\n" + what.checked.first_scenario},
        {"sweep.yaml", to_yaml(what.plan)}}) {
    auto file = output_file::create(to / name);
    if (!file) return fail(file.error());
    (*file)->write(text);
    if (auto done = (*file)->commit(); !done) return fail(done.error(), exit_run_failed);
  }
  return exit_ok;
}

/// The seeds as text: '1..20' for consecutive ones.
std::string seeds_text(const std::vector<std::uint64_t>& seeds) {
  if (seeds.size() == 1 || seeds.back() - seeds.front() + 1 != seeds.size() ||
      !std::is_sorted(seeds.begin(), seeds.end()))
    return seeds.size() == 1 ? fmt::format("{0}..{0}", seeds.front())
                             : fmt::format("{}", fmt::join(seeds, ","));
  return fmt::format("{}..{}", seeds.front(), seeds.back());
}

std::string command_of(const sweep_plan& plan) {
  auto out = "shoal sweep " + shell_word(plan.scenario);
  for (const auto& set : plan.sets) out += " --set " + shell_word(set);
  for (const auto& each : plan.vary)
    out += " --vary " + shell_word(fmt::format("{}={}", each.path, fmt::join(each.values, ",")));
  return out + " --seeds " + seeds_text(plan.seeds);
}

int write_table(const sound_sweep& what, const sweep_arguments& arguments) {
  const auto table = make_table(what.plan, what.directory);
  if (!table) return fail(table.error(), exit_run_failed);
  for (const auto& [name, text] :
       {std::pair{"table.csv", table_csv(what.plan, *table)},
        {"table.md", table_markdown(what.plan, *table)},
        {"cells.csv", cells_csv(what.plan, *table)},
        {"sweep.html", sweep_page(what.plan, *table, what.checked.name, command_of(what.plan))}}) {
    auto file = output_file::create(what.directory / name);
    if (!file) return fail(file.error(), exit_run_failed);
    (*file)->write(text);
    if (auto done = (*file)->commit(); !done) return fail(done.error(), exit_run_failed);
  }
  if (arguments.json) {
    fmt::print("{}", table_json(what.plan, *table));
  } else {
    fmt::print("{}\n",
               table_text(what.plan, *table, terminal_columns(STDOUT_FILENO).value_or(100'000)));
    if (what.plan.seeds.size() > 1)
      fmt::print("mean ± 95 % confidence interval by Student's t over {} seeds\n",
                 what.plan.seeds.size());
    fmt::print("{}: sweep.html, table.csv, table.md, cells.csv\n", what.directory.string());
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return fail("cannot write to stdout", exit_run_failed);
  return exit_ok;
}

int write_slurm(const sound_sweep& what, const sweep_arguments& arguments, std::size_t jobs) {
  slurm_array array;
  array.name = what.checked.name;
  array.directory = fs::absolute(what.directory).lexically_normal().string();
  array.program = arguments.program;
  array.cells = what.plan.cells();
  array.jobs = jobs;
  for (std::size_t cell = 0; cell < array.cells; ++cell) {
    if (!has_cell(what.plan, what.directory, cell)) continue;
    const auto run = read_summary(what.directory / "cells" / cell_name(what.plan, cell));
    if (!run) return fail(run.error());
    array.cell_seconds = std::max(array.cell_seconds, run->wall_seconds);
    array.cell_bytes = std::max(array.cell_bytes, run->peak_rss_bytes);
  }
  std::error_code error;
  fs::create_directories(what.directory / "slurm", error);
  for (const auto& each : slurm_array_files(array)) {
    const auto path = what.directory / each.path;
    auto file = output_file::create(path);
    if (!file) return fail(file.error(), exit_run_failed);
    (*file)->write(each.text);
    if (auto done = (*file)->commit(); !done) return fail(done.error(), exit_run_failed);
    if (each.executable)
      fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, error);
  }
  fmt::print("{0}: submit, array.sbatch, table.sbatch\nnext: {0}/submit\n",
             what.directory.string());
  return exit_ok;
}

void print_failed(const sound_sweep& what, const std::vector<failed_cell>& failed) {
  constexpr std::size_t most = 20;
  for (std::size_t i = 0; i < std::min(failed.size(), most); ++i) {
    const auto& each = failed[i];
    const auto label = what.plan.label_of(what.plan.point_of(each.cell));
    fmt::print(stderr, "error: cell {} ({}{}seed {}): {}: {}\n", cell_name(what.plan, each.cell),
               label, label.empty() ? "" : ", ", what.plan.seed_of(each.cell), each.how,
               each.last_line.empty() ? "it said nothing" : each.last_line);
  }
  if (failed.size() > most)
    fmt::print(stderr, "error: {} more cells failed\n", failed.size() - most);
  if (!failed.empty())
    fmt::print(stderr,
               "note: {} has all that a cell said; 'shoal sweep --out {}' runs them again\n",
               (what.directory / "cells/NUMBER.partial/run.log").string(),
               shell_word(what.directory.string()));
}

int run(const sweep_arguments& arguments) {
  for (const auto& metric : arguments.metrics)
    if (!is_sweep_metric(metric))
      return unknown_word("--metric", "metric", metric, sweep_metrics()), exit_usage;
  part share;
  if (!arguments.part.empty()) {
    const auto said = part_of(arguments.part);
    if (!said)
      return fail(fmt::format("--part {}: expected I/N with I below N, as in 0/4", arguments.part),
                  exit_usage);
    share = *said;
  }
  sound_sweep what;
  if (const int code =
          arguments.file.empty() ? plan_of_directory(arguments, what) : plan_from(arguments, what);
      code != exit_ok)
    return code;
  if (!arguments.file.empty())
    if (const int code = take_directory(what); code != exit_ok) return code;
  const auto jobs = arguments.jobs > 0
                        ? arguments.jobs
                        : std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
  if (arguments.slurm) return write_slurm(what, arguments, jobs);
  if (what.checked.world != "sim" && jobs > 1)
    fmt::print(stderr,
               "warning: world {} goes by the wall clock, and {} cells at a time disturb each "
               "other: -j 1\n",
               what.checked.world, jobs);

  cell_runner how;
  how.directory = what.directory;
  how.program = "/proc/self/exe"; // the running program, even if a build replaces it meanwhile
  how.arguments = {"--quiet", "--no-report"};
  if (what.checked.world == "sim") how.arguments.insert(how.arguments.end(), {"-j", "1"});
  const auto& metrics = what.plan.metrics;
  if (!what.checked.expects_baseline &&
      std::find(metrics.begin(), metrics.end(), "loss.baseline") == metrics.end())
    how.arguments.emplace_back("--no-baseline");
  how.jobs = jobs;
  how.interrupted = interrupted;
  progress_bar bar(isatty(STDERR_FILENO) != 0, wants_colour(STDERR_FILENO));
  if (!arguments.quiet)
    how.on_progress = [&](const sweep_progress& progress) { bar.show(progress); };
  catch_interrupts();
  std::vector<std::size_t> cells;
  for (std::size_t cell = share.index; cell < what.plan.cells(); cell += share.of)
    cells.push_back(cell);
  const auto outcome = run_cells(what.plan, cells, how);
  bar.clear();
  if (!outcome) return fail(outcome.error(), exit_run_failed);
  print_failed(what, outcome->failed);
  if (outcome->interrupted) {
    fmt::print(stderr, "interrupted: {} of {} cells are finished; 'shoal sweep --out {}' goes on\n",
               outcome->progress.finished, outcome->progress.cells,
               shell_word(what.directory.string()));
    return exit_interrupted;
  }
  if (arguments.part.empty())
    if (const int code = write_table(what, arguments); code != exit_ok) return code;
  return outcome->failed.empty() ? exit_ok : exit_run_failed;
}

} // namespace

void add_sweep(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<sweep_arguments>();
  auto* command = app.add_subcommand(
      "sweep", "run a scenario over a grid of options and seeds, and make one table of it");
  command
      ->add_option("scenario", arguments->file,
                   "YAML file of the scenario; without it: go on with the sweep in --out")
      ->type_name("FILE");
  command
      ->add_option("--vary", arguments->vary,
                   "an option and its values: a,b,c or from..to:count or from..to:countlog; "
                   "repeatable, all are combined")
      ->type_name("PATH=VALUES")
      ->allow_extra_args(false);
  command
      ->add_option("--seeds", arguments->seeds,
                   "how many (1 to N), or which, as in 3,7 or 5..9 (default: the scenario's)")
      ->type_name("SEEDS");
  command->add_option("--set", arguments->sets, "override an option in all cells; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--metric", arguments->metrics,
                   "columns of the table, as in loss.final,rounds.failed")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_option("-j,--jobs", arguments->jobs, "cells at a time (default: one for each core)")
      ->type_name("N")
      ->check(CLI::Range(1u, 4096u));
  command
      ->add_option("-o,--out", arguments->out,
                   "the sweep's folder; finished cells in it are kept (default: FILE.sweep)")
      ->type_name("DIR");
  command
      ->add_option("--part", arguments->part,
                   "run only cells I, I + N, I + 2 N, ..., and make no table")
      ->type_name("I/N");
  command->add_flag("--slurm", arguments->slurm,
                    "run nothing; write a Slurm array job for it into the folder");
  command
      ->add_option("--program", arguments->program,
                   "with --slurm: the program's path on the cluster (shoal)")
      ->type_name("PATH");
  command->add_flag("--json", arguments->json,
                    "print the table as JSON on stdout and nothing else there");
  command->add_flag("-q,--quiet", arguments->quiet, "no progress on stderr");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

} // namespace shoal::tools
