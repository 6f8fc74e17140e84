// shoal chaos: random swarms in random storms, thousands of them, each from one seed.
#include "actors/conduct/conducts.hpp"
#include "actors/failpoints.hpp"
#include "actors/probes.hpp"
#include "kernels/base/descriptor.hpp"
#include "scenarios/chaos/chaos_run.hpp"
#include "scenarios/chaos/inevitable.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/observe/output_text.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/terminal.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace shoal::tools {

namespace {

using scenarios::chaos_case;
using scenarios::chaos_options;
using scenarios::chaos_result;
using wall_clock = std::chrono::steady_clock;

struct chaos_arguments {
  std::string seeds = "1..100", mutant, method, folder = ".";
  std::optional<std::uint64_t> only, inevitable;
  unsigned tries = 8;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  double twice = 5;
  std::optional<double> hours;
  bool show = false, keep = false, mutants = false, hostile = false, guarded = false;
};

/// The longest time of a case. A longer one counts as a hang.
constexpr auto patience = std::chrono::minutes(5);

/// The names of all injected bugs.
std::vector<std::string> bugs() {
  std::vector<std::string> out;
  for (const auto& one : actors::conducts().all())
    if (one.kind == actors::conduct_kind::bug) out.push_back(one.name);
  return out;
}

/// No known bug: each host has the conduct of its group.
constexpr auto no_bug = "";

/// Runs a case in a process of its own: a crash or a loop without end is a finding.
class running_case {
public:
  running_case(const chaos_case& what, const std::string& conduct, bool twice,
               const std::optional<scenarios::run_branch>& branch = {})
      : seed_(what.seed), begun_(wall_clock::now()) {
    int ends[2];
    if (pipe(ends) != 0) return;
    std::fflush(nullptr);
    const auto parent = getpid();
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(0);
      close(ends[0]);
      std::signal(SIGINT, SIG_IGN);
      auto found = scenarios::run_case(what, conduct, branch);
      if (twice && found.problems.empty()) {
        auto again = scenarios::run_case(what, conduct, branch);
        again.core_seconds = found.core_seconds;
        if (!(again == found))
          found.problems.push_back("the second run has another history than the first");
      }
      const auto text = scenarios::to_json(found);
      for (std::size_t at = 0; at < text.size();) {
        const auto count = write(ends[1], text.data() + at, text.size() - at);
        if (count <= 0) break;
        at += static_cast<std::size_t>(count);
      }
      std::fflush(nullptr);
      _exit(0);
    }
    close(ends[1]);
    from_ = descriptor(ends[0]);
  }
  running_case(const running_case&) = delete;
  ~running_case() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }

  std::uint64_t seed() const noexcept { return seed_; }
  int readable() const noexcept { return from_.get(); }

  /// Nothing while it goes on. Requires: not asked again after a result.
  std::optional<chaos_result> ended() {
    char part[4096];
    ssize_t count = 0;
    pollfd ready{from_.get(), POLLIN, 0};
    while (poll(&ready, 1, 0) > 0 && (count = read(from_.get(), part, sizeof part)) > 0)
      text_.append(part, static_cast<std::size_t>(count));
    const bool late = wall_clock::now() - begun_ > patience;
    if ((ready.revents == 0 || count > 0) && !late) return std::nullopt;
    if (late) kill(child_, SIGKILL);
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    if (!late)
      if (auto found = scenarios::chaos_result_from_json(text_)) return *found;
    chaos_result out;
    out.problems.push_back(
        late                  ? fmt::format("hangs: no end after {} s",
                                            std::chrono::duration_cast<std::chrono::seconds>(patience).count())
        : WIFSIGNALED(status) ? fmt::format("crashed: {}", strsignal(WTERMSIG(status)))
                              : fmt::format("ended with status {}", WEXITSTATUS(status)));
    return out;
  }

  chaos_result wait() {
    for (;;) {
      pollfd ready{from_.get(), POLLIN, 0};
      poll(&ready, 1, 1000);
      if (auto found = ended()) return *found;
    }
  }

private:
  std::uint64_t seed_;
  wall_clock::time_point begun_;
  pid_t child_ = -1;
  descriptor from_;
  std::string text_;
};

struct totals {
  std::uint64_t cases = 0, failed = 0, epochs = 0, accusations = 0, bans = 0;
  double virtual_seconds = 0, busy_seconds = 0;
  std::map<std::string, std::uint64_t> faults, points, failpoints, reasons;

  void add(const chaos_result& what) {
    ++cases;
    if (!what.problems.empty()) ++failed;
    epochs += what.epochs;
    accusations += what.accusations;
    bans += what.bans;
    virtual_seconds += what.virtual_seconds;
    busy_seconds += what.core_seconds;
    for (const auto& [name, count] : what.faults) faults[name] += count;
    for (const auto& [name, count] : what.points) points[name] += count;
    for (const auto& [name, count] : what.failpoints) failpoints[name] += count;
    for (const auto& [name, count] : what.reasons) reasons[name] += count;
  }

  std::string text() const {
    const auto list = [](const std::map<std::string, std::uint64_t>& of) {
      std::string out;
      for (const auto& [name, count] : of)
        out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, count);
      return out.empty() ? std::string("none") : out;
    };
    std::string never;
    const auto miss = [&](const auto& all, const std::map<std::string, std::uint64_t>& reached) {
      for (const auto name : all) {
        const auto found = reached.find(std::string(name));
        if (found == reached.end() || found->second == 0)
          never += fmt::format("{}{}", never.empty() ? "" : ", ", name);
      }
    };
    miss(actors::probes::all, points);
    miss(actors::failpoint::all, failpoints);
    return fmt::format("cases          {}, {} failed\n"
                       "virtual time   {}, {:.0f} virtual seconds in one of a core\n",
                       cases, failed,
                       virtual_seconds < 86400
                           ? scenarios::seconds_text(virtual_seconds)
                           : fmt::format("{:.1f} days", virtual_seconds / 86400),
                       busy_seconds > 0 ? virtual_seconds / busy_seconds : 0) +
           fmt::format("epochs         {}\n"
                       "hosts struck   {}\n"
                       "rounds         {}\n"
                       "refused        {} messages of attackers; bans by {} hosts\n"
                       "points reached {}\n"
                       "failpoints     {}\n"
                       "never reached  {}\n",
                       epochs, list(faults), list(reasons), accusations, bans, list(points),
                       list(failpoints), never.empty() ? "none" : never);
  }
};

std::string command_of(const chaos_arguments& from, std::uint64_t seed) {
  auto out = fmt::format("shoal chaos --only {}", seed);
  if (from.hours) out += fmt::format(" --hours-virtual {}", *from.hours);
  if (!from.method.empty()) out += " --method " + from.method;
  if (from.guarded)
    out += " --btard";
  else if (from.hostile)
    out += " --hostile";
  return out;
}

/// The kind of a problem, without times and numbers: 'same_bits', 'not healed'.
std::string kind_of(const chaos_result& what) {
  if (what.problems.empty()) return {};
  const auto& first = what.problems.front();
  return first.substr(0, std::min(first.find(" violated"), first.find(':')));
}

void report(const chaos_arguments& arguments, const chaos_case& what, const chaos_result& found) {
  fmt::print("seed {}: {}\n", what.seed, what.text());
  for (const auto& problem : found.problems) fmt::print("  {}\n", problem);
  fmt::print("  again:   {}\n", command_of(arguments, what.seed));
}

/// Writes a smaller scenario that fails in the same way. With any failure allowed, another bug
/// could take the first one's place.
void write_smaller(const chaos_arguments& arguments, const chaos_case& what,
                   const std::string& kind) {
  const auto smaller = scenarios::shrink(what, [&](const chaos_case& less) {
    return !interrupted() && kind_of(running_case(less, no_bug, false).wait()) == kind;
  });
  const auto file = fmt::format("{}/chaos-{}.yaml", arguments.folder, what.seed);
  std::ofstream out(file);
  out << smaller.yaml();
  if (out.flush())
    fmt::print("seed {}, smaller: {} ({})\n", what.seed, file, smaller.text());
  else
    fmt::print("seed {}, smaller: cannot write {}\n{}", what.seed, file, smaller.yaml());
  std::fflush(stdout);
}

/// Cases of a range of seeds, some at once.
struct case_loop {
  std::uint64_t first = 0, last = 0;
  unsigned jobs = 1;
  chaos_options how;

  /// Runs the cases. `twice(seed)`: whether the seed's history is compared with that of a second
  /// run. `ended(seed, result)`: false ends the loop. `state()`: the text on the terminal
  /// meanwhile.
  template <class Twice, class State, class Ended>
  void run(const std::string& conduct, Twice twice, State state, Ended ended) const {
    const auto columns = terminal_columns(STDERR_FILENO);
    const auto clear = [&] {
      if (columns) fmt::print(stderr, "\r\033[K");
    };
    const auto begun = wall_clock::now();
    auto next_line = begun + std::chrono::minutes(1);
    std::vector<std::unique_ptr<running_case>> now;
    std::uint64_t next = first, over = 0;
    while ((next <= last || !now.empty()) && !interrupted()) {
      for (; next <= last && now.size() < jobs; ++next)
        now.push_back(std::make_unique<running_case>(draw_case(next, how), conduct, twice(next)));
      std::vector<pollfd> ready;
      ready.reserve(now.size());
      for (const auto& each : now) ready.push_back({each->readable(), POLLIN, 0});
      poll(ready.data(), ready.size(), 200);
      for (auto at = now.begin(); at != now.end();) {
        const auto found = (*at)->ended();
        if (!found) {
          ++at;
          continue;
        }
        const auto seed = (*at)->seed();
        at = now.erase(at);
        ++over;
        if (!found->problems.empty()) clear();
        if (!ended(seed, *found)) return clear();
      }
      // A log that no terminal shows has a line a minute.
      if (!columns && wall_clock::now() < next_line) continue;
      next_line += std::chrono::minutes(1);
      const double seconds = std::chrono::duration<double>(wall_clock::now() - begun).count();
      auto line = state();
      if (over > 0)
        line += ", " + eta_text(seconds, static_cast<double>(over),
                                static_cast<double>(last - first + 1 - over));
      clear();
      if (columns)
        fmt::print(stderr, "{}", one_line(line, *columns - 1));
      else
        fmt::print(stderr, "{}\n", line);
    }
    clear();
  }
};

struct found_mutant {
  std::uint64_t seed = 0;
  std::string problem;
};

/// The first of the seeds that finds the bug. Each seed runs twice, because some bugs show only in
/// the difference.
std::optional<found_mutant> find_mutant(const case_loop& loop, const std::string& name) {
  std::optional<found_mutant> out;
  std::uint64_t tried = 0;
  loop.run(
      name, [](std::uint64_t) { return true; },
      [&] { return fmt::format("{}: {} of {} seeds", name, tried, loop.last - loop.first + 1); },
      [&](std::uint64_t seed, const chaos_result& found) {
        ++tried;
        // A case that fails without the bug, too, is no evidence.
        if (!found.problems.empty() &&
            running_case(draw_case(seed, loop.how), no_bug, true).wait().problems.empty())
          out = found_mutant{seed, found.problems.front()};
        return !out;
      });
  return out;
}

/// A table of all known bugs. A chaos that cannot fail proves nothing.
int show_mutants(const case_loop& loop) {
  std::size_t missed = 0;
  fmt::print("{:<18} {:>6}  how\n", "bug", "seed");
  for (const auto& name : bugs()) {
    const auto found = find_mutant(loop, name);
    if (interrupted()) return exit_interrupted;
    missed += found ? 0 : 1;
    // The text about the first occurrence is enough.
    const auto how = found ? found->problem.substr(0, found->problem.find(", first at "))
                           : fmt::format("not by {}..{}", loop.first, loop.last);
    fmt::print("{:<18} {:>6}  {}\n", name, found ? std::to_string(found->seed) : "-", how);
    std::fflush(stdout);
  }
  return missed == 0 ? exit_ok : exit_run_failed;
}

/// A seed after the moment `at` with which the case does well, or nothing after all tries. Runs
/// some tries at once.
std::optional<std::uint64_t> way_out(const chaos_case& what, const chaos_arguments& arguments,
                                     duration at, unsigned& runs) {
  std::uint64_t next = 1;
  const std::uint64_t last = arguments.tries;
  std::deque<std::unique_ptr<running_case>> now;
  for (std::uint64_t seed = 1; seed <= last && !interrupted(); ++seed) {
    // The first try alone says whether the moment comes before the failure at all.
    const auto most = seed == 1 ? 1 : arguments.jobs;
    for (; next <= last && now.size() < most; ++next, ++runs)
      now.push_back(std::make_unique<running_case>(what, arguments.mutant, false,
                                                   scenarios::run_branch{at, next}));
    // In the order of seeds, so that the result does not depend on the number of jobs.
    const auto found = now.front()->wait();
    now.pop_front();
    if (found.problems.empty()) return seed;
    if (!found.branched || (found.violated_seconds && *found.violated_seconds < to_seconds(at)))
      break;
  }
  return std::nullopt;
}

/// The last moment of a failing case from which another future was possible.
int show_inevitable(const chaos_arguments& arguments, const chaos_options& how) {
  const auto what = draw_case(*arguments.inevitable, how);
  const auto begun = wall_clock::now();
  const auto found = running_case(what, arguments.mutant, false).wait();
  const auto with = arguments.mutant.empty() ? std::string{} : " with " + arguments.mutant;
  if (interrupted()) return exit_interrupted;
  if (found.problems.empty())
    return fail(fmt::format("seed {}{} does well: nothing in it was inevitable", what.seed, with));
  fmt::print("seed {}{}: {}\n", what.seed, with, what.text());
  fmt::print("  failure     {}\n", found.problems.front());
  std::fflush(stdout);
  const auto again = running_case(what, arguments.mutant, false).wait();
  if (again.event_hash != found.event_hash || again.problems != found.problems)
    return fail(fmt::format("seed {}{} has another history in each run, so none of its moments "
                            "comes again",
                            what.seed, with));
  const auto columns = terminal_columns(STDERR_FILENO);
  unsigned runs = 2, moments = 0;
  const auto result = scenarios::find_inevitable(
      what.times.storm + what.times.healing, std::chrono::milliseconds(10),
      [&](duration at) -> std::optional<std::uint64_t> {
        if (interrupted()) return std::nullopt;
        ++moments;
        if (columns)
          fmt::print(stderr, "\r\033[K{}",
                     one_line(fmt::format("moment {}: {:.3f} s, {} runs so far", moments,
                                          to_seconds(at), runs),
                              *columns - 1));
        return way_out(what, arguments, at, runs);
      });
  if (columns) fmt::print(stderr, "\r\033[K");
  if (interrupted()) return exit_interrupted;
  if (!result.last) {
    fmt::print("  inevitable  from the start: none of {} futures from 0 s on is fine\n",
               arguments.tries);
  } else {
    fmt::print("  way out     at {:.3f} s: with seed {} from there on, all is well\n",
               to_seconds(result.last->at), result.last->seed);
    fmt::print("  inevitable  at {:.3f} s: none of {} futures from there on is fine\n",
               to_seconds(result.closed), arguments.tries);
    if (found.violated_seconds)
      fmt::print("  noticed     at {:.3f} s, {:.3f} s later\n", *found.violated_seconds,
                 *found.violated_seconds - to_seconds(result.closed));
  }
  const double seconds = std::chrono::duration<double>(wall_clock::now() - begun).count();
  fmt::print("  tried       {} moments, {} runs, {}\n", result.moments, runs,
             scenarios::seconds_text(seconds));
  return exit_ok;
}

int chaos(const chaos_arguments& arguments) {
  if (const auto known = bugs();
      !arguments.mutant.empty() &&
      std::find(known.begin(), known.end(), arguments.mutant) == known.end()) {
    unknown_word("--mutant", "bug", arguments.mutant, known);
    return exit_usage;
  }
  std::uint64_t first = 0, last = 0;
  if (arguments.only) {
    first = last = *arguments.only;
  } else {
    const auto dots = arguments.seeds.find("..");
    const auto number = [](const std::string& text, std::uint64_t& into) {
      return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
             text.size() < 19 && (into = std::stoull(text), true);
    };
    const bool fine = dots == std::string::npos
                          ? number(arguments.seeds, last) && (first = 1, true)
                          : number(arguments.seeds.substr(0, dots), first) &&
                                number(arguments.seeds.substr(dots + 2), last);
    if (!fine || last < first || last == 0)
      return fail(
          fmt::format("--seeds: '{}' is no range of seeds, as 1..10000 or 500 is", arguments.seeds),
          exit_usage);
  }
  chaos_options how;
  if (arguments.hours) {
    if (!(*arguments.hours >= 0.1 && *arguments.hours <= 10'000))
      return fail("--hours-virtual: from 0.1 to 10000", exit_usage);
    how.length = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::duration<double>(*arguments.hours * 3600));
  }
  if (!arguments.method.empty()) {
    const auto* method = scenarios::methods().find(arguments.method);
    if (method == nullptr || !method->draw)
      return fail(
          fmt::format("--method: '{}' is no method that random swarms can have", arguments.method),
          exit_usage);
    how.method = arguments.method;
  }
  how.hostile = arguments.hostile || arguments.guarded;
  how.guarded = arguments.guarded;
  if (arguments.show) {
    for (auto seed = first; seed <= last; ++seed) fmt::print("{}", draw_case(seed, how).yaml());
    return exit_ok;
  }
  catch_interrupts();
  if (arguments.inevitable) return show_inevitable(arguments, how);
  const case_loop loop{first, last, arguments.jobs, how};
  if (arguments.mutants) return show_mutants(loop);
  if (!arguments.mutant.empty()) {
    const auto found = find_mutant(loop, arguments.mutant);
    if (interrupted()) return exit_interrupted;
    if (!found)
      return fail(fmt::format("{} was not found by {} seeds", arguments.mutant, last - first + 1),
                  exit_run_failed);
    fmt::print("{} is found by seed {}: {}\n", arguments.mutant, found->seed, found->problem);
    return exit_ok;
  }
  totals all;
  std::vector<std::pair<std::uint64_t, std::string>> failures; // seed, kind
  loop.run(
      no_bug,
      // The share of a hundred is exact for any range of seeds.
      [&](std::uint64_t seed) {
        return arguments.only || static_cast<double>(seed * 37 % 100) < arguments.twice;
      },
      [&] {
        return fmt::format("{} of {} cases, {} failed", all.cases, last - first + 1, all.failed);
      },
      [&](std::uint64_t seed, const chaos_result& found) {
        all.add(found);
        if (!found.problems.empty()) {
          report(arguments, draw_case(seed, how), found);
          failures.emplace_back(seed, kind_of(found));
        }
        std::fflush(stdout);
        return true;
      });
  fmt::print("{}", all.text());
  std::fflush(stdout);
  // Shrinking takes minutes, so it begins after all seeds have run.
  if (!arguments.keep)
    for (const auto& [seed, kind] : failures)
      if (!interrupted()) write_smaller(arguments, draw_case(seed, how), kind);
  if (interrupted()) return exit_interrupted;
  return all.failed > 0 ? exit_run_failed : exit_ok;
}

} // namespace

void add_chaos(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<chaos_arguments>();
  auto* command =
      app.add_subcommand("chaos", "run random swarms in random storms, and look for what breaks");
  command->add_option("--seeds", arguments->seeds, "which: FIRST..LAST, or how many")
      ->type_name("A..B")
      ->capture_default_str();
  command->add_option("--only", arguments->only, "this seed alone, twice")->type_name("SEED");
  command
      ->add_option("--inevitable", arguments->inevitable,
                   "find the last moment of this failing seed from which another future was "
                   "possible; with --mutant, of the seed with that bug")
      ->type_name("SEED");
  command
      ->add_option("--tries", arguments->tries,
                   "with --inevitable: how many futures are tried from each moment")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1000u));
  command->add_option("-j,--jobs", arguments->jobs, "cases at once (as many as there are cores)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1024u));
  command
      ->add_option("--hours-virtual", arguments->hours,
                   "duration of each case (default: about forty epochs of the swarm). In its "
                   "last third no fault strikes")
      ->type_name("H");
  command
      ->add_option("--check-determinism", arguments->twice,
                   "percentage of cases whose second run has to have the same history")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  command
      ->add_option("--mutant", arguments->mutant,
                   "put a known bug into the protocols, and end with the first seed that finds it")
      ->type_name("BUG");
  command->add_option("--method", arguments->method, "the training method of all swarms")
      ->type_name("METHOD");
  command->add_flag("--hostile", arguments->hostile,
                    "each swarm has one member that attacks the others; some swarms have "
                    "security.kind btard");
  command->add_flag("--btard", arguments->guarded,
                    "the same, and all swarms have security.kind btard");
  command->add_flag("--mutants", arguments->mutants,
                    "do so with every known bug in turn, and print a table; each has to be found");
  command->add_option("-o,--out", arguments->folder, "where the smaller scenarios of failures go")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_flag("--show", arguments->show, "print the scenarios instead of running them");
  command->add_flag("--no-shrink", arguments->keep,
                    "do not look for smaller scenarios that fail alike");
  command->callback([arguments, &chosen] { chosen = [arguments] { return chaos(*arguments); }; });
}

} // namespace shoal::tools
