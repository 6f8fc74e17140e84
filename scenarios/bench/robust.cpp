#include "scenarios/bench/robust.hpp"

#include "actors/averaging/aggregator.hpp"
#include "actors/averaging/round.hpp"
#include "actors/conduct/attacks_on_values.hpp"
#include "actors/conduct/conducts.hpp"
#include "kernels/base/text_fields.hpp"
#include "kernels/reduce_weighted_mean.hpp"
#include "scenarios/bench/robust_btard.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/runner/world.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace shoal::scenarios {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The end of an error about an unknown `word`: the name that was meant, or all there are.
std::string instead_of(std::string_view word, const std::vector<std::string>& known) {
  return did_you_mean(word, known, fmt::format("there are: {}", fmt::join(known, ", ")));
}

std::vector<std::string> names_of_options(const std::vector<actors::aggregator_option>& of) {
  std::vector<std::string> out;
  for (const auto& one : of) out.push_back(one.name);
  return out;
}

/// Errors: an option that the aggregator does not have, or a value out of its range.
result<void> check_options(const actors::aggregator_definition& of,
                           const actors::option_values& options) {
  for (const auto& [name, value] : options) {
    const auto found = std::find_if(of.options.begin(), of.options.end(),
                                    [&name = name](const auto& one) { return one.name == name; });
    if (found == of.options.end())
      return failure{fmt::format("'{}' has no option '{}'; {}", of.name, name,
                                 instead_of(name, names_of_options(of.options)))};
    if ((found->above && value <= *found->above) || (found->at_least && value < *found->at_least) ||
        (found->at_most && value > *found->at_most) || value < 0)
      return failure{fmt::format("'{}' of '{}' cannot be {}", name, of.name, value)};
  }
  return {};
}

class aggregator_defence final : public bench_defence {
public:
  aggregator_defence(const actors::aggregator_definition& of, actors::option_values options)
      : of_(of), options_(std::move(options)) {}

  payload reduce(std::uint64_t step, std::span<const bench_contribution> from) override {
    const auto size = from.front().values.floats().size();
    const auto by = of_.make({&of_.options, options_, size, size, step});
    std::vector<std::uint64_t> weights;
    for (const auto& one : from) weights.push_back(static_cast<std::uint64_t>(one.weight));
    by->open(size, weights);
    for (std::uint32_t m = 0; m < from.size(); ++m)
      by->add(m, from[m].weight, from[m].values.floats());
    std::vector<float> out(size);
    for (auto left = from.size(); left > 0; --left) {
      const auto bad = by->close(out);
      if (!bad) return payload{std::move(out)};
      by->leave_out(*bad);
    }
    return {};
  }

private:
  const actors::aggregator_definition& of_;
  const actors::option_values options_;
};

defence_definition defence_of(const actors::aggregator_definition& of) {
  return {of.name, of.meaning,
          [&of](const actors::option_values& given, std::size_t members,
                std::size_t attackers) -> result<std::unique_ptr<bench_defence>> {
            if (auto right = check_options(of, given); !right) return failure{right.error()};
            auto options = given;
            // Nobody knows the number of attackers. The table shows the method at its best.
            const auto known = names_of_options(of.options);
            if (std::find(known.begin(), known.end(), "faulty") != known.end() &&
                !given.contains("faulty")) {
              options["faulty"] = static_cast<double>(attackers);
              while (options["faulty"] > 0 &&
                     of.bears(members, {&of.options, options}).least_members > members)
                --options["faulty"];
            }
            return std::unique_ptr<bench_defence>{
                std::make_unique<aggregator_defence>(of, std::move(options))};
          }};
}

} // namespace

definition_list<defence_definition>& defences() {
  static definition_list<defence_definition> list{};
  static const bool filled = [] {
    for (const auto& one : actors::aggregators().all()) list.add(defence_of(one));
    list.add(btard_defence());
    return true;
  }();
  (void)filled;
  return list;
}

result<std::pair<std::string, actors::option_values>> parse_spec(const std::string& text,
                                                                 const std::string& standard) {
  const auto colon = text.find(':');
  std::pair<std::string, actors::option_values> out{text.substr(0, colon), {}};
  if (colon == std::string::npos) return out;
  std::size_t at = colon + 1;
  while (at <= text.size()) {
    const auto end = std::min(text.find('+', at), text.size());
    const auto item = text.substr(at, end - at);
    const auto equals = item.find('=');
    const auto key = equals == std::string::npos ? standard : item.substr(0, equals);
    const auto digits = equals == std::string::npos ? item : item.substr(equals + 1);
    const auto value = number_of<double>(digits);
    if (key.empty() || !value)
      return failure{fmt::format("'{}': expected NAME or NAME:OPTION=NUMBER+OPTION=NUMBER", text)};
    out.second[key] = *value;
    at = end + 1;
  }
  return out;
}

namespace {

class robust_run {
public:
  robust_run(const robust_bench& what, const robust_cell& cell, prepared_workload& work,
             std::unique_ptr<bench_defence> defence)
      : what_(what), cell_(cell), work_(work), defence_(std::move(defence)), hosts_(hosts_of()) {}

  void spawn(const actors::conduct_options& attack) {
    auto& net = hosts_.net();
    const auto region = net.add_region("here");
    const auto shared = std::make_shared<actors::collusion>();
    for (std::size_t m = 0; m < what_.members; ++m) {
      auto& host = hosts_.boot(net.add_machine(
          {.name = fmt::format("m-{}", m), .region = region, .up = {1e9}, .down = {1e9}}));
      // The attackers come last, so that they see the others.
      const bool attacks = m + cell_.attackers >= what_.members && attack.kind != "honest";
      auto how = attack;
      how.with = shared;
      conducts_.push_back(attacks
                              ? actors::make_conduct(how, host)
                              : std::make_shared<actors::watched_host>(host, std::vector{shared}));
    }
  }

  robust_outcome run() {
    const auto steps = what_.from.training.epochs;
    const auto tenth = std::max<std::uint64_t>(1, steps / 10);
    auto state = work_.work()->initial();
    robust_outcome out;
    out.accuracy = nan;
    out.curve.push_back(work_.held_out_loss(state));
    for (std::uint64_t step = 0; step < steps; ++step) {
      const auto from = contributions(state, step);
      const auto gradient = defence_->reduce(step, from);
      if (gradient.empty()) break;
      defence_->audit(from, [&](std::size_t m) {
        const auto found = std::find_if(from.begin(), from.end(),
                                        [m](const auto& one) { return one.member == m; });
        return honest(state, first_sample_[m], static_cast<std::uint64_t>(found->weight));
      });
      state = work_.work()->step(state, gradient);
      state.epoch = step + 1;
      if (!kernels::all_finite(state.parameters.floats())) {
        out.loss = nan;
        return out;
      }
      if ((step + 1) % tenth == 0) out.curve.push_back(work_.held_out_loss(state));
    }
    out.loss = work_.held_out_loss(state);
    out.accuracy = work_.held_out_accuracy(state);
    return out;
  }

private:
  static world hosts_of() {
    world_options options;
    options.compute_threads = 0;
    return world(std::move(options));
  }

  std::vector<bench_contribution> contributions(const actors::model_state& state,
                                                std::uint64_t step) {
    std::vector<std::size_t> members;
    for (std::size_t m = 0; m < what_.members; ++m)
      if (defence_->contributes(m)) members.push_back(m);
    // The contributing members share the samples of a step.
    const auto batch = std::max<std::uint64_t>(1, traits_of(what_.from).target_batch.value_or(512) /
                                                      std::max<std::size_t>(members.size(), 1));
    const auto& work = *work_.work();
    std::vector<bench_contribution> out;
    std::vector<double> sum(work.value_count());
    for (const auto m : members) {
      first_sample_[m] = std::exchange(next_sample_, next_sample_ + batch);
      const auto samples = read(first_sample_[m], batch);
      std::fill(sum.begin(), sum.end(), 0.0);
      conducts_[m]->learns_by(work, step).accumulate(state, samples, batch, sum);
      actors::round_request request;
      request.epoch = step;
      request.weight = batch;
      request.expected.resize(what_.members - 1);
      auto values = actors::mean_gradient(sum, batch);
      conducts_[m]->contribute(values, request);
      out.push_back({static_cast<double>(batch), std::move(values), m});
    }
    return out;
  }

  std::vector<std::byte> read(std::uint64_t first, std::uint64_t count) const {
    const auto source = work_.source();
    const auto size = source->sample_bytes();
    std::vector<std::byte> out(count * size);
    for (std::uint64_t i = 0; i < count; ++i)
      source->read(first + i, std::span(out).subspan(i * size, size));
    return out;
  }

  payload honest(const actors::model_state& state, std::uint64_t first, std::uint64_t count) const {
    const auto& work = *work_.work();
    std::vector<double> sum(work.value_count());
    work.accumulate(state, read(first, count), count, sum);
    return actors::mean_gradient(sum, count);
  }

  const robust_bench& what_;
  const robust_cell& cell_;
  prepared_workload& work_;
  std::unique_ptr<bench_defence> defence_;
  world hosts_;
  std::vector<std::shared_ptr<actors::conduct>> conducts_;
  std::uint64_t next_sample_ = 0;
  std::map<std::size_t, std::uint64_t> first_sample_; // each member's, in this step
};

std::vector<std::string> names_of_attacks() {
  std::vector<std::string> out{"none"};
  for (const auto& one : actors::conducts().all())
    if (one.changes_values) out.push_back(one.name);
  return out;
}

std::vector<std::string> names_of_defences() {
  std::vector<std::string> out;
  for (const auto& one : defences().all()) out.push_back(one.name);
  return out;
}

result<actors::conduct_options> attack_of(const robust_bench& what, const robust_cell& cell) {
  const auto spec = parse_spec(cell.attack, "strength");
  if (!spec) return failure{spec.error()};
  actors::conduct_options out;
  out.from_epoch = what.from_step;
  out.knows = what.knows;
  if (spec->first == "none") return out;
  out.kind = spec->first;
  const auto* found = actors::conducts().find(out.kind);
  if (found == nullptr || !found->changes_values)
    return failure{
        fmt::format("unknown attack '{}'; {}", out.kind, instead_of(out.kind, names_of_attacks()))};
  for (const auto& [key, value] : spec->second) {
    if (key == "strength")
      out.strength = value;
    else if (key == "every" && value >= 1)
      out.every_epochs = static_cast<std::uint64_t>(value);
    else
      return failure{fmt::format("an attack has the options strength and every (at least 1), not "
                                 "'{}'",
                                 key)};
  }
  const auto& work = what.from.workload.definition();
  if (found->changes_labels && !work.has_labels)
    return failure{
        fmt::format("'{}' changes labels, and the samples of the workload '{}' have none", out.kind,
                    work.name)};
  return out;
}

} // namespace

result<robust_outcome> run_robust_cell(const robust_bench& what, const robust_cell& cell) {
  if (cell.attackers >= what.members)
    return failure{fmt::format("{} attackers of {} members leave nobody honest", cell.attackers,
                               what.members)};
  if (!what.from.workload.definition().has_numbers)
    return failure{fmt::format("the workload '{}' has sizes alone: there is nothing to attack",
                               what.from.workload.name())};
  const auto attack = attack_of(what, cell);
  if (!attack) return failure{attack.error()};
  const auto spec = parse_spec(cell.defence, "");
  if (!spec) return failure{spec.error()};
  const auto* defence = defences().find(spec->first);
  if (defence == nullptr)
    return failure{fmt::format("unknown defence '{}'; {}", spec->first,
                               instead_of(spec->first, names_of_defences()))};
  auto made = defence->make(spec->second, what.members, cell.attackers);
  if (!made) return failure{made.error()};
  auto seeded = what;
  seeded.from.seed = cell.seed;
  auto work = prepare_workload(seeded.from);
  if (!work) return failure{work.error()};
  prepare_compute_thread();
  robust_run run(seeded, cell, **work, std::move(*made));
  run.spawn(*attack);
  return run.run();
}

} // namespace shoal::scenarios
