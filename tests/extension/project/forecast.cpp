// The program 'forecast' computes the distortion that theory expects of averaging strategies. No
// swarm runs.
#include "actors/averaging/averaging_strategy.hpp"
#include "scenarios/programs/program.hpp"

#include <nlohmann/json.hpp>

namespace extension {
using namespace shoal;
using namespace shoal::scenarios;

struct forecast_options {
  std::vector<std::string> strategies;
  std::uint64_t peers = 16, rounds = 50;
  bool operator==(const forecast_options&) const = default;
};

template <class V>
void describe(V& v, forecast_options& o) {
  v.field("strategies", o.strategies, "those that are forecast",
          {.required = true, .one_of = actors::averaging_strategies().names()});
  v.field("peers", o.peers, "how many", {.at_least = 3, .at_most = 1e6});
  v.field("rounds", o.rounds, "of the forecast", {.at_least = 1, .at_most = 1e6});
}

program_definition forecast_program() {
  program_definition out;
  static_cast<kind_definition&>(out) = {"forecast",
                                        "instead of a training run: what theory expects of "
                                        "averaging",
                                        options_box::of(forecast_options{})};
  out.title = "a forecast of averaging";
  out.sections = {"name", "seed"};
  out.alone = "a forecast has no swarm";
  out.check = [](const scenario&, const source_map&, const std::string&, std::vector<problem>&) {};
  out.outline = [](const scenario& what) {
    return "a forecast of " + std::to_string(what.program.as<forecast_options>().rounds) +
           " rounds";
  };
  out.run = [](const scenario& what, const program_hooks& hooks) -> result<program_outcome> {
    const auto& o = what.program.as<forecast_options>();
    program_outcome done;
    nlohmann::ordered_json summary{{"scenario", what.name}};
    auto& panel = done.charts.emplace_back("forecast.svg", outcome_chart{}).second.panels;
    panel.push_back({"what theory expects", {}});
    for (const auto& name : o.strategies) {
      const auto* strategy = actors::averaging_strategies().find(name);
      outcome_chart::curve curve{name, {}, true, panel.back().curves.size()};
      for (std::uint64_t t = 0; strategy->theory && t <= o.rounds; ++t)
        if (const auto expected = strategy->theory({o.peers, {}, 32, 0, what.seed}, t, 0))
          curve.values.push_back(*expected);
      if (curve.values.empty()) return failure{"theory expects nothing of '" + name + "'"};
      summary["distortion"][name] = curve.values.back();
      if (hooks.print) hooks.print(name + ": " + std::to_string(curve.values.back()) + "\n");
      panel.back().curves.push_back(std::move(curve));
    }
    done.summary = summary.dump(2) + "\n";
    return done;
  };
  return out;
}

} // namespace extension
