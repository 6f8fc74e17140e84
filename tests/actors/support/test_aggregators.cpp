#include "tests/actors/support/test_aggregators.hpp"

#include "kernels/reduce_weighted_mean.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::actors::testing {

namespace {

/// Keeps the added values; refuses values that are not finite.
class retaining : public aggregator {
public:
  void open(std::size_t, std::span<const std::uint64_t>) override { added_.clear(); }
  void add(std::uint32_t member, double, std::span<const float> values) override {
    added_.push_back({member, values});
  }
  void leave_out(std::uint32_t member) override {
    std::erase_if(added_, [&](const auto& one) { return one.first == member; });
  }
  std::optional<std::uint32_t> close(std::span<float> out) override {
    for (const auto& [member, values] : added_)
      if (!kernels::all_finite(values)) return member;
    std::vector<std::span<const float>> inputs;
    for (const auto& [member, values] : added_) inputs.push_back(values);
    make(inputs, out);
    return std::nullopt;
  }

private:
  virtual void make(const std::vector<std::span<const float>>& inputs, std::span<float> out) = 0;
  std::vector<std::pair<std::uint32_t, std::span<const float>>> added_;
};

float median_at(const std::vector<std::span<const float>>& inputs, std::size_t j) {
  std::vector<float> sorted;
  for (const auto& one : inputs) sorted.push_back(one[j]);
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2];
}

std::size_t middle_of(const std::vector<std::span<const float>>& inputs) {
  std::vector<std::pair<double, std::size_t>> norms;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    double sum = 0;
    for (const double x : inputs[i]) sum += x * x;
    norms.emplace_back(sum, i);
  }
  std::sort(norms.begin(), norms.end());
  return norms[(norms.size() - 1) / 2].second;
}

class median final : public retaining {
  void make(const std::vector<std::span<const float>>& inputs, std::span<float> out) override {
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = median_at(inputs, j);
  }
};

class middle_norm final : public retaining {
  void make(const std::vector<std::span<const float>>& inputs, std::span<float> out) override {
    const auto chosen = inputs[middle_of(inputs)];
    std::copy(chosen.begin(), chosen.end(), out.begin());
  }
};

/// `expected(inputs, j)` returns value j of the part.
template <class Expected>
std::optional<std::string> compare(const aggregate_claim& what, Expected expected) {
  std::vector<std::span<const float>> inputs;
  for (const auto& one : what.inputs) inputs.push_back(one.values);
  for (std::size_t j = 0; j < what.result.size(); ++j) {
    const float wanted = expected(inputs, what.begin - what.inputs_begin + j);
    if (what.result[j] != wanted)
      return fmt::format("value {} is {}, not {}", what.begin + j, what.result[j], wanted);
  }
  return std::nullopt;
}

} // namespace

const aggregator_definition& test_median() {
  static const auto& added = aggregators().add(
      {"test_median", "the lower median of each coordinate", aggregation_unit::part,
       [](const aggregation_setting&) { return std::make_unique<median>(); },
       [](const aggregate_claim& what) { return compare(what, median_at); }});
  return added;
}

const aggregator_definition& test_middle_norm() {
  static const auto& added = aggregators().add(
      {"test_middle_norm", "the contribution of the middle norm", aggregation_unit::part,
       [](const aggregation_setting&) { return std::make_unique<middle_norm>(); },
       [](const aggregate_claim& what) {
         return compare(
             what, [](const auto& inputs, std::size_t j) { return inputs[middle_of(inputs)][j]; });
       }});
  return added;
}

} // namespace shoal::actors::testing
