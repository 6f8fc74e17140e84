#include "scenarios/bench/robust_btard.hpp"

#include "actors/averaging/aggregator.hpp"
#include "actors/trust/audit_plan.hpp"
#include "actors/trust/identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace shoal::scenarios {

namespace {

double distance(std::span<const float> a, std::span<const float> b) {
  double square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    square += d * d;
  }
  return std::sqrt(square);
}

class btard final : public bench_defence {
public:
  btard(double radius, std::uint32_t validators, std::size_t members, std::size_t attackers)
      : radius_(radius), validators_(validators), members_(members),
        first_attacker_(members - attackers), banned_(members), busy_(members) {}

  payload reduce(std::uint64_t step, std::span<const bench_contribution> from) override {
    const auto& clip = *actors::aggregators().find("centered_clip");
    const auto size = from.front().values.floats().size();
    if (base_batch_ == 0) base_batch_ = from.front().weight;
    const auto by =
        clip.make({&clip.options, {{"radius", radius_}, {"batch", base_batch_}}, size, size, step});
    std::vector<std::uint64_t> weights;
    for (const auto& one : from) weights.push_back(static_cast<std::uint64_t>(one.weight));
    by->open(size, weights);
    for (std::uint32_t i = 0; i < from.size(); ++i)
      by->add(i, from[i].weight, from[i].values.floats());
    std::vector<float> out(size);
    for (auto left = from.size(); left > 0; --left) {
      const auto bad = by->close(out);
      if (!bad) return result_ = payload{std::move(out)};
      by->leave_out(*bad);
    }
    return {};
  }

  bool contributes(std::size_t member) const override { return !banned_[member] && !busy_[member]; }

  void audit(std::span<const bench_contribution> from,
             const std::function<payload(std::size_t)>& honest) override {
    // In a swarm the members' secrets make this number. Nobody knows it before the result.
    auto hash = actors::statement("bench.random");
    hash.add(result_.bytes());
    const auto random = hash.finish();
    std::vector<std::uint64_t> weights(members_);
    std::vector<double> distances(members_, -1);
    std::vector<bool> there(members_);
    for (const auto& one : from) {
      weights[one.member] = static_cast<std::uint64_t>(one.weight);
      distances[one.member] =
          distance(one.values.floats(), result_.floats()) * std::sqrt(one.weight);
    }
    for (std::size_t m = 0; m < members_; ++m) there[m] = !banned_[m];
    auto plan = actors::plan_audits(random, weights, there, validators_);
    if (const auto suspect = actors::farthest_member(distances))
      if (const auto watcher = actors::draw_watcher(random, there, *suspect))
        plan.push_back({*watcher, *suspect});
    std::fill(busy_.begin(), busy_.end(), false);
    for (const auto& [validator, target] : plan) {
      if (validator >= first_attacker_) continue;
      busy_[validator] = true;
      const auto said = std::find_if(from.begin(), from.end(),
                                     [t = target](const auto& one) { return one.member == t; });
      const auto owed = honest(target);
      if (said == from.end() || owed.size() != said->values.size() ||
          std::memcmp(owed.bytes().data(), said->values.bytes().data(), owed.size()) != 0)
        banned_[target] = true;
    }
    bool nobody = true;
    for (std::size_t m = 0; m < members_; ++m) nobody = nobody && !contributes(m);
    if (nobody) std::fill(busy_.begin(), busy_.end(), false);
  }

private:
  const double radius_;
  const std::uint32_t validators_;
  const std::size_t members_, first_attacker_;
  std::vector<bool> banned_, busy_;
  double base_batch_ = 0;
  payload result_;
};

} // namespace

defence_definition btard_defence() {
  return {"btard", "CenteredClip, and members audit and ban each other",
          [](const actors::option_values& given, std::size_t members,
             std::size_t attackers) -> result<std::unique_ptr<bench_defence>> {
            double radius = 1, validators = 1;
            for (const auto& [name, value] : given) {
              if (name == "radius" && value > 0)
                radius = value;
              else if (name == "validators" && value >= 1 &&
                       value < static_cast<double>(members - attackers))
                validators = value;
              else
                return failure{
                    fmt::format("'btard' has the options radius (above 0) and validators "
                                "(from 1, and fewer than honest members), not {} {}",
                                name, value)};
            }
            return std::unique_ptr<bench_defence>{std::make_unique<btard>(
                radius, static_cast<std::uint32_t>(validators), members, attackers)};
          }};
}

} // namespace shoal::scenarios
