#include "actors/averaging/aggregator_mean.hpp"

#include "kernels/reduce_weighted_mean.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shoal::actors {

namespace {

class weighted_mean final : public aggregator {
public:
  void open(std::size_t, std::span<const std::uint64_t>) override {
    members_.clear();
    inputs_.clear();
  }
  void add(std::uint32_t member, double weight, std::span<const float> values) override {
    members_.push_back(member);
    inputs_.push_back({weight, values});
  }
  void leave_out(std::uint32_t member) override {
    const auto found = std::find(members_.begin(), members_.end(), member);
    if (found == members_.end()) return;
    inputs_.erase(inputs_.begin() + (found - members_.begin()));
    members_.erase(found);
  }
  std::optional<std::uint32_t> close(std::span<float> out) override {
    const auto bad = kernels::weighted_mean(inputs_, out);
    if (bad < members_.size()) return members_[bad];
    return std::nullopt;
  }

private:
  std::vector<std::uint32_t> members_;
  std::vector<kernels::weighted_values> inputs_; // in the order of `members_`
};

struct mean_at {
  double mean = 0, magnitude = 0; // both weighted
  // The weighted mean of the values, clamped to the codec's largest value.
  double cut_off = 0;
};

mean_at mean_of(const aggregate_claim& what, double total, std::size_t j) {
  double sum = 0, size = 0, cut_off = 0;
  for (const auto& in : what.inputs) {
    const double x = what.beside_result(in)[j];
    sum += in.weight * x;
    size += in.weight * std::abs(x);
    cut_off += in.weight * std::clamp(x, -what.allowed.largest, what.allowed.largest);
  }
  return {sum / total, size / total, cut_off / total};
}

/// The error that lossy codecs may cause in each value.
double lost_by_codecs(const aggregate_claim& what, double total) {
  const auto& allowed = what.allowed;
  const auto loss = allowed.loss + allowed.mean_loss + allowed.loss * allowed.mean_loss;
  // Lets differences of single denormal bits pass.
  double out = 1e-40;
  if (loss <= 0) return out;
  for (const auto& in : what.inputs) {
    float largest = 0;
    for (const float x : what.beside_result(in)) largest = std::max(largest, std::abs(x));
    out += in.weight / total * largest * loss;
  }
  return out + (allowed.loss_of_small + allowed.mean_loss_of_small);
}

std::optional<std::string> verify(const aggregate_claim& what) {
  double total = 0;
  for (const auto& in : what.inputs) total += in.weight;
  const double lost = lost_by_codecs(what, total);
  const auto violation = [&](std::size_t j) -> std::optional<std::string> {
    const auto expected = mean_of(what, total, j);
    const double allowed = what.allowed.relative * expected.magnitude + lost;
    const double got = what.result[j];
    // The comparison is false for NaN.
    if (std::abs(got - expected.mean) <= allowed || std::abs(got - expected.cut_off) <= allowed)
      return std::nullopt;
    return fmt::format("value {} is {}, but the weighted mean of its {} senders is {}",
                       what.begin + j, what.result[j], what.inputs.size(), expected.mean);
  };
  for (std::size_t j = what.start; j < what.result.size(); j += what.stride)
    if (auto wrong = violation(j)) return wrong;
  return violation(what.result.size() - 1);
}

} // namespace

aggregator_definition weighted_mean_definition() {
  return {"mean", "the mean weighted by samples: the gradient of one large batch",
          aggregation_unit::chunk,
          [](const aggregation_setting&) { return std::make_unique<weighted_mean>(); }, verify};
}

} // namespace shoal::actors
