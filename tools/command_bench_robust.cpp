// shoal bench robust: attacks on the values of training against aggregators, in one table.
#include "kernels/base/json_text.hpp"
#include "scenarios/bench/robust.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/load.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/spread.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <memory>

namespace shoal::tools {

namespace {

using json = nlohmann::ordered_json;

struct robust_arguments {
  std::string file, knows = "everybody";
  std::vector<std::string> sets, attacks, defences;
  std::vector<std::size_t> attackers{3, 7};
  std::size_t members = 16;
  std::uint64_t seeds = 3, from_step = 0;
  bool json = false;
};

/// A cell of the table. `aim`: the mean without attack and with the plain mean.
std::string cell_text(const spread& loss, const spread& accuracy, double aim, double first) {
  if (loss.diverged > 0)
    return loss.count == 0
               ? "fails: diverges"
               : fmt::format("fails: {} of {} diverge", loss.diverged, loss.diverged + loss.count);
  auto out = loss.mean < 1e4 ? fmt::format("{:.4f} ± {:.4f}", loss.mean, loss.deviation)
                             : fmt::format("{:.1e}", loss.mean);
  if (accuracy.count > 0)
    out += fmt::format(", {:.1f} ± {:.1f} %", 100 * accuracy.mean, 100 * accuracy.deviation);
  if (aim > 0) {
    if (loss.mean >= first)
      out += ", fails";
    else if (loss.mean > 1.02 * aim)
      out += fmt::format(", +{:.0f} %", 100 * (loss.mean / aim - 1));
  }
  return out;
}

int bench_robust(const robust_arguments& a) {
  auto loaded = scenarios::load(a.file, a.sets);
  for (const auto* list : {&loaded.errors, &loaded.warnings})
    for (const auto& what : *list) fmt::print(stderr, "{}", scenarios::render(what));
  if (!loaded.value) return exit_bad_input;
  scenarios::robust_bench what{*loaded.value, a.members, a.from_step,
                               a.knows == "everybody" ? actors::attacker_knowledge::everybody
                                                      : actors::attacker_knowledge::colluders};
  if (what.from.training.epochs == 0)
    return fail(fmt::format("{}: training.epochs says how many steps are taken, and is 0", a.file));
  json all = json::array();
  double first = 0;
  const auto measure = [&](const std::string& attack, const std::string& defence,
                           std::size_t attackers) -> result<std::pair<spread, spread>> {
    std::vector<double> losses, accuracies;
    for (std::uint64_t seed = 1; seed <= a.seeds; ++seed) {
      const scenarios::robust_cell cell{attack, defence, attackers, seed};
      const auto outcome = scenarios::run_robust_cell(what, cell);
      if (!outcome) return failure{outcome.error()};
      losses.push_back(outcome->loss);
      accuracies.push_back(outcome->accuracy);
      first = outcome->curve.front();
      all.push_back({{"attack", attack},
                     {"defence", defence},
                     {"attackers", attackers},
                     {"seed", seed},
                     {"loss", outcome->loss},
                     {"accuracy", outcome->accuracy},
                     {"curve", outcome->curve}});
    }
    return std::pair{of_values(losses), of_values(accuracies)};
  };
  const auto clean = measure("none", "mean", 0);
  if (!clean) return fail(clean.error());
  const double aim = clean->first.mean;
  if (!a.json)
    fmt::print("Without attack and with the plain mean: {}; at the start {:.4f}.\n",
               cell_text(clean->first, clean->second, 0, 0), first);
  for (const auto attackers : a.attackers) {
    if (!a.json) {
      fmt::print("\n{} of {} members attack from step {} of {}; {} seeds\n\n| attack |", attackers,
                 a.members, a.from_step, what.from.training.epochs, a.seeds);
      for (const auto& defence : a.defences) fmt::print(" {} |", defence);
      fmt::print("\n|---|");
      for (std::size_t i = 0; i < a.defences.size(); ++i) fmt::print("---|");
      fmt::print("\n");
    }
    for (const auto& attack : a.attacks) {
      if (!a.json) fmt::print("| {} |", attack);
      for (const auto& defence : a.defences) {
        const auto found = measure(attack, defence, attackers);
        if (!found) return fail(found.error());
        if (!a.json) {
          fmt::print(" {} |", cell_text(found->first, found->second, aim, first));
          std::fflush(stdout);
        }
      }
      if (!a.json) fmt::print("\n");
    }
  }
  if (a.json) fmt::print("{}\n", json_text(all, 2));
  return exit_ok;
}

} // namespace

void add_bench_robust(CLI::App& bench, action& chosen) {
  auto* command = bench.add_subcommand(
      "robust", "trains under attack: each attack against each aggregator, without a network");
  auto a = std::make_shared<robust_arguments>();
  command
      ->add_option("FILE", a->file,
                   "a scenario; its workload, data, optimizer, target_batch and epochs count")
      ->required();
  command->add_option("--set", a->sets, "KEY=VALUE changes an option of the scenario");
  a->attacks = {"none",
                "flipped_signs:1000",
                "random_direction:1000",
                "delayed_gradients:30",
                "inner_product_manipulation:0.1",
                "inner_product_manipulation:0.6",
                "little_is_enough"};
  a->defences = {"mean",       "median",           "trimmed_mean",
                 "multi_krum", "geometric_median", "centered_clip"};
  command
      ->add_option("--attack", a->attacks,
                   "one or several, as NAME:STRENGTH; 'none' for a run without attack")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--defence", a->defences,
                   "one or several aggregators, as NAME:OPTION=NUMBER+OPTION=NUMBER; without a "
                   "number, `faulty` is that of the attackers, or the most that the method bears")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--members", a->members, "members of the group")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  command->add_option("--attackers", a->attackers, "how many of them attack; a table for each")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--from-step", a->from_step, "the first attacked step")
      ->capture_default_str();
  command->add_option("--seeds", a->seeds, "runs of each cell")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--knows", a->knows,
                   "the contributions that attackers know: 'everybody' or 'colluders'")
      ->check(CLI::IsMember({"everybody", "colluders"}))
      ->capture_default_str();
  command->add_flag("--json", a->json, "print all figures for programs");
  command->callback([a, &chosen] { chosen = [a] { return bench_robust(*a); }; });
}

} // namespace shoal::tools
