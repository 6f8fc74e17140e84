// The base of robust aggregators. They collect a whole unit, mix its contributions if the
// options say so (kernels/robust/pre_aggregation.hpp), and apply their method to the results.
//
// A method is a class that is made of an aggregation_setting and has
//   template <class Out>
//   void operator()(std::span<const kernels::weighted_values> inputs, std::span<Out> out) const;
// robust_definition() makes a definition of it. verify() applies the method in double precision.
#pragma once

#include "actors/averaging/aggregator.hpp"
#include "kernels/reduce_weighted_mean.hpp"
#include "kernels/robust/pre_aggregation.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors {

/// The contributions to one unit, in member order.
struct unit_inputs {
  std::vector<std::uint32_t> members{};
  std::vector<kernels::weighted_values> values{};
};

/// The contributions after the steps that the options `bucket_size` and `nearest_mixing` ask for.
class mixed_inputs {
public:
  /// Requires: `inputs` outlive the object.
  mixed_inputs(const unit_inputs& inputs, const aggregation_setting& how);
  std::span<const kernels::weighted_values> values() const { return values_; }

private:
  void apply(const std::vector<kernels::mixture>& mixtures);

  std::vector<std::vector<float>> rooms_; // the values of mixtures
  std::vector<kernels::weighted_values> values_;
};

/// Collects units.
class robust_aggregator : public aggregator {
public:
  explicit robust_aggregator(const aggregation_setting& how) : setting_(how) {}

  void open(std::size_t size, std::span<const std::uint64_t> weights) final;
  void add(std::uint32_t member, double weight, std::span<const float> values) final;
  void leave_out(std::uint32_t member) final;
  std::optional<std::uint32_t> close(std::span<float> out) final;

protected:
  virtual void reduce(std::span<const kernels::weighted_values> inputs,
                      std::span<float> out) const = 0;
  const aggregation_setting setting_;

private:
  unit_inputs inputs_;
};

/// `method(inputs, out)` in double precision.
using exact_method =
    std::function<void(std::span<const kernels::weighted_values>, std::span<double>)>;
/// Describes an error in a claim, if there is one. For each value j of a unit:
///   |result[j] - exact[j]| <= relative * max(|exact[j]|, lower median of |x_i[j]|)
/// With lossy codecs a method may choose other contributions. The result is then between the
/// smallest and the largest x_i[j], up to the codecs' losses.
std::optional<std::string> verify_robust(const aggregate_claim& what, aggregation_unit unit,
                                         const std::string& name, const exact_method& method);

/// `options` with those of the mixing steps.
std::vector<aggregator_option> with_mixing(std::vector<aggregator_option> options);
/// The number of contributions after bucketing.
std::uint64_t after_buckets(std::uint64_t members, const aggregation_setting& how);

template <class Method>
aggregator_definition robust_definition(
    const std::string& name, const std::string& meaning, aggregation_unit unit,
    std::vector<aggregator_option> options,
    std::function<robustness(std::uint64_t inputs, const aggregation_setting&)> bears) {
  class collector final : public robust_aggregator {
  public:
    explicit collector(const aggregation_setting& how)
        : robust_aggregator(how), method_(setting_) {}

  private:
    void reduce(std::span<const kernels::weighted_values> inputs,
                std::span<float> out) const override {
      method_(inputs, out);
    }
    Method method_;
  };
  return {name,
          meaning,
          unit,
          [](const aggregation_setting& how) { return std::make_unique<collector>(how); },
          [unit, name](const aggregate_claim& what) {
            return verify_robust(what, unit, name,
                                 [&](std::span<const kernels::weighted_values> inputs,
                                     std::span<double> out) { Method(what.setting)(inputs, out); });
          },
          with_mixing(std::move(options)),
          [bears = std::move(bears)](std::uint64_t members, const aggregation_setting& how) {
            auto out = bears(after_buckets(members, how), how);
            // So many buckets have at least so many members.
            out.least_members = (out.least_members - 1) * how.count("bucket_size") + 1;
            return out;
          }};
}

} // namespace shoal::actors
