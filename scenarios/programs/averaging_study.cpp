// The program 'averaging_study': peers that only average, without the runner, in a world of their
// own (scenarios/bench/averaging.hpp).
#include "scenarios/programs/averaging_study.hpp"

#include "actors/averaging/averaging_strategy.hpp"
#include "scenarios/bench/averaging_report.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {
// A program may name its parts as other programs name theirs.
namespace averaging_study_program_parts {
namespace {

constexpr std::uint64_t most_values = std::uint64_t{1} << 32; // 16 GiB

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

const averaging_study& study_of(const scenario& what) {
  return what.program.as<averaging_study>();
}

class study_checker : checking {
public:
  study_checker(const scenario& what, const source_map& sources, std::vector<problem>& problems)
      : checking(sources, problems), what_(what), s_(study_of(what)) {}

  void run() {
    if (sound({"world"}) && what_.world != "sim")
      error("world", fmt::format("a study of averaging runs in virtual time: 'world' cannot be {}",
                                 what_.world));
    list("strategies", s_.strategies, "strategy");
    list("failures", s_.failures, "probability");
    places();
    for (std::size_t i = 0; i < s_.expect.size(); ++i)
      expectation(s_.expect[i], under(fmt::format("expect.{}", i)));
  }

private:
  static std::string under(const std::string& key) { return "averaging_study." + key; }

  template <class T>
  void list(const char* key, const std::vector<T>& values, const char* one) {
    if (!sound({under(key)})) return;
    if (values.empty())
      error(under(key), fmt::format("{}: at least one {} is needed", under(key), one));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto path = fmt::format("{}.{}", under(key), i);
      if (!sound({path})) continue;
      if (std::find(values.begin(), values.begin() + static_cast<long>(i), values[i]) !=
          values.begin() + static_cast<long>(i))
        error(path, fmt::format("the {} {} is named twice", one, written(values[i])));
    }
  }

  using strategy = actors::averaging_strategy;

  /// Whether the study runs a strategy with the trait.
  template <class Trait>
  bool runs(Trait trait) const {
    return std::any_of(s_.strategies.begin(), s_.strategies.end(), [&](const std::string& name) {
      const auto* found = actors::averaging_strategies().find(name);
      return found != nullptr && trait(*found);
    });
  }

  /// The names of all strategies with the trait, in quotes.
  template <class Trait>
  static std::string all_that(Trait trait) {
    std::string out;
    for (const auto& each : actors::averaging_strategies().all())
      if (trait(each)) out += fmt::format("{}'{}'", out.empty() ? "" : ", ", each.name);
    return out;
  }

  void places() {
    const auto on_grid = [](const strategy& each) { return each.uses_grid; };
    const auto of_any_size = [](const strategy& each) { return each.uses_group_size; };
    const bool groups = runs(of_any_size);
    if (sound({under("grid")}) && s_.grid.cells() > most_study_cells)
      error(under("grid"), fmt::format("a grid of {} has {} cells: at most {} are possible",
                                       to_string(s_.grid), s_.grid.cells(), most_study_cells));
    if (!sound({under("strategies"), under("peers")})) return;
    const bool known = sound_inside({under("strategies")});
    if (known && sources_.given(under("grid")) && !runs(on_grid))
      warn(under("grid"), "no strategy uses the grid: it is of " + all_that(on_grid));
    if (known && sources_.given(under("group")) && !groups)
      warn(under("group"), "no strategy uses the group size: it is of " + all_that(of_any_size));
    if (groups && sound({under("group")}) && s_.group > s_.peers)
      error(sources_.given(under("group")) ? under("group") : under("peers"),
            fmt::format("groups of {}: there are only {} peers", s_.group, s_.peers));
    if (sound({under("vector")}) && s_.peers <= most_study_peers &&
        s_.vector > most_values / s_.peers)
      error(sources_.given(under("vector")) ? under("vector") : under("peers"),
            fmt::format(
                "vectors of {} for {} peers do not fit into memory: at most {} values in all do",
                s_.vector, s_.peers, most_values));
    if (sound({under("groups")}) && s_.groups == group_assignment::dht &&
        s_.peers > most_study_peers_with_dht)
      error(under("peers"),
            fmt::format("{} peers do not find together in one process: at most {} do", s_.peers,
                        most_study_peers_with_dht),
            {"with 'groups: given' they are told with whom they average"});
  }

  void expectation(const study_expectation& e, const std::string& path) {
    if (!sound({path, path + ".strategy", path + ".failure", path + ".rounds", under("strategies"),
                under("failures")}))
      return;
    if (sound_inside({under("strategies")}) && !contains(s_.strategies, e.strategy))
      error(path + ".strategy",
            fmt::format("the study does not run '{}': it is not one of 'strategies'", e.strategy));
    if (!contains(s_.failures, e.failure))
      error(path + ".failure",
            fmt::format("the study has no failure {}: it is not one of 'failures'", e.failure));
    const auto* known = actors::averaging_strategies().find(e.strategy);
    if (!e.rounds && known != nullptr && !known->rounds)
      error(path,
            fmt::format("missing key 'rounds' in {}: '{}' has no closed form", path, e.strategy));
    if (e.rounds && sound({under("rounds")}) && *e.rounds > static_cast<double>(s_.rounds))
      error(path + ".rounds",
            fmt::format("{} rounds can never be: the study ends after {}", *e.rounds, s_.rounds));
  }

  const scenario& what_;
  const averaging_study& s_;
};

/// '1 strategy', '2 strategies'.
std::string counted(std::size_t count, const char* stem, const char* one, const char* several) {
  return fmt::format("{} {}{}", count, stem, count == 1 ? one : several);
}

} // namespace
} // namespace averaging_study_program_parts

program_definition averaging_study_program() {
  using namespace averaging_study_program_parts;
  program_definition out;
  out.name = "averaging_study";
  out.meaning =
      "instead of a training run: peers that only average, by several strategies. Nothing "
      "else but `name`, `description` and `seed` stands beside it";
  out.options = options_box::of(averaging_study{});
  out.title = "a study of averaging";
  out.sections = {"name", "description", "seed"};
  out.alone = "a study only averages, and says everything in its own section";
  out.complete = [](scenario& what) {
    auto& study = what.program.as<averaging_study>();
    if (study.grid.dimensions == 0)
      study.grid = kernels::square_grid(std::min(study.peers, most_study_peers));
  };
  out.check = [](const scenario& what, const source_map& sources, const std::string&,
                 std::vector<problem>& problems) { study_checker(what, sources, problems).run(); };
  out.outline = [](const scenario& what) {
    const auto& study = study_of(what);
    return fmt::format("a study of averaging among {} peers, {} at {}", study.peers,
                       counted(study.strategies.size(), "strateg", "y", "ies"),
                       counted(study.failures.size(), "failure rate", "", "s"));
  };
  out.run = [](const scenario& what, const program_hooks& hooks) -> result<program_outcome> {
    const auto figures = run_with_tables(study_of(what), what.seed, hooks);
    if (!figures) return failure{figures.error()};
    return outcome_of(what.name, study_of(what), what.seed, *figures);
  };
  return out;
}

} // namespace shoal::scenarios
