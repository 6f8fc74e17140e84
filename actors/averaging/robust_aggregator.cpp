#include "actors/averaging/robust_aggregator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shoal::actors {

// -- mixing ---------------------------------------------------------------------------------------

mixed_inputs::mixed_inputs(const unit_inputs& inputs, const aggregation_setting& how)
    : values_(inputs.values) {
  if (const auto size = how.count("bucket_size"); size > 1) {
    const std::vector<std::uint64_t> names(inputs.members.begin(), inputs.members.end());
    apply(kernels::buckets(values_, kernels::shuffled_order(names, how.seed), size));
  }
  if (how.flag("nearest_mixing")) apply(kernels::nearest_mixtures(values_, how.count("faulty")));
}

void mixed_inputs::apply(const std::vector<kernels::mixture>& mixtures) {
  std::vector<std::vector<float>> rooms;
  std::vector<kernels::weighted_values> mixed;
  for (const auto& one : mixtures) {
    auto& room = rooms.emplace_back(values_.front().values.size());
    kernels::mix<float>(values_, one, room);
    mixed.push_back({one.weight, room});
  }
  rooms_ = std::move(rooms);
  values_ = std::move(mixed);
}

std::vector<aggregator_option> with_mixing(std::vector<aggregator_option> options) {
  const auto has = [&](const char* name) {
    return std::any_of(options.begin(), options.end(),
                       [&](const auto& one) { return one.name == name; });
  };
  if (!has("faulty"))
    options.push_back({"faulty",
                       "contributions that may be faulty, for `nearest_mixing`",
                       option_form::count,
                       0,
                       {},
                       {},
                       4e6});
  options.push_back(
      {"bucket_size",
       "contributions in a bucket, whose mean takes their place. The group's name decides who "
       "shares a bucket. 1: no buckets",
       option_form::count,
       1,
       {},
       1,
       4e6});
  options.push_back({"nearest_mixing",
                     "each contribution is first replaced by the mean of its nearest ones, all but "
                     "`faulty`",
                     option_form::flag});
  return options;
}

std::uint64_t after_buckets(std::uint64_t members, const aggregation_setting& how) {
  const auto size = how.count("bucket_size");
  return (members + size - 1) / size;
}

// -- collecting -----------------------------------------------------------------------------------

void robust_aggregator::open(std::size_t, std::span<const std::uint64_t>) {
  inputs_ = {};
}

void robust_aggregator::add(std::uint32_t member, double weight, std::span<const float> values) {
  inputs_.members.push_back(member);
  inputs_.values.push_back({weight, values});
}

void robust_aggregator::leave_out(std::uint32_t member) {
  const auto found = std::find(inputs_.members.begin(), inputs_.members.end(), member);
  if (found == inputs_.members.end()) return;
  inputs_.values.erase(inputs_.values.begin() + (found - inputs_.members.begin()));
  inputs_.members.erase(found);
}

std::optional<std::uint32_t> robust_aggregator::close(std::span<float> out) {
  for (std::size_t i = 0; i < inputs_.members.size(); ++i)
    if (!kernels::all_finite(inputs_.values[i].values)) return inputs_.members[i];
  const mixed_inputs mixed(inputs_, setting_);
  reduce(mixed.values(), out);
  return std::nullopt;
}

// -- verifying ------------------------------------------------------------------------------------

namespace {

float lower_median_of_magnitudes(const unit_inputs& of, std::size_t j, std::vector<float>& room) {
  room.clear();
  for (const auto& one : of.values) room.push_back(std::abs(one.values[j]));
  const auto middle = room.begin() + static_cast<std::ptrdiff_t>((room.size() - 1) / 2);
  std::nth_element(room.begin(), middle, room.end());
  return *middle;
}

float largest_magnitude(const unit_inputs& of) {
  float out = 0;
  for (const auto& one : of.values)
    for (const float x : one.values) out = std::max(out, std::abs(x));
  return out;
}

/// The range in which a value may be if codecs were lossy.
std::pair<double, double> range_of(const unit_inputs& of, std::size_t j, double lost) {
  double low = of.values.front().values[j], high = low;
  for (const auto& one : of.values) {
    low = std::min(low, static_cast<double>(one.values[j]));
    high = std::max(high, static_cast<double>(one.values[j]));
  }
  return {low - lost, high + lost};
}

} // namespace

std::optional<std::string> verify_robust(const aggregate_claim& what, aggregation_unit unit,
                                         const std::string& name, const exact_method& method) {
  const bool whole = unit == aggregation_unit::part;
  const auto length = what.inputs.front().values.size();
  // The inputs of a unit by chunk are those of the result, and a stretch begins with a chunk.
  const std::size_t from = what.begin - what.inputs_begin;
  const std::size_t step = whole || what.setting.chunk_values == 0
                               ? length
                               : static_cast<std::size_t>(what.setting.chunk_values);
  const auto& allowed = what.allowed;
  const double loss = allowed.loss + allowed.mean_loss + allowed.loss * allowed.mean_loss;
  std::size_t number = 0;
  std::vector<float> room;
  for (std::size_t at = whole ? 0 : from; at < (whole ? length : from + what.result.size());
       at += step, ++number) {
    const auto size = std::min(step, (whole ? length : from + what.result.size()) - at);
    const bool last = at + size >= from + what.result.size();
    if (!whole && !last && number % what.stride != what.start % what.stride) continue;
    unit_inputs inputs;
    for (const auto& one : what.inputs) {
      inputs.members.push_back(one.member);
      inputs.values.push_back({one.weight, one.values.subspan(at, size)});
    }
    std::vector<double> exact(size);
    if (loss <= 0) {
      const mixed_inputs mixed(inputs, what.setting);
      method(mixed.values(), exact);
    }
    const double lost =
        loss * largest_magnitude(inputs) + allowed.loss_of_small + allowed.mean_loss_of_small;
    for (std::size_t j = 0; j < size; ++j) {
      if (at + j < from || at + j >= from + what.result.size()) continue;
      const double got = what.result[at + j - from];
      if (loss > 0) {
        const auto [low, high] = range_of(inputs, j, lost);
        if (got >= low && got <= high) continue;
        return fmt::format("value {} is {}, but those of the {} senders are from {} to {}",
                           what.inputs_begin + at + j, got, what.inputs.size(), low, high);
      }
      const double scale = std::max(
          std::abs(exact[j]), static_cast<double>(lower_median_of_magnitudes(inputs, j, room)));
      // The comparison is false for NaN.
      if (std::abs(got - exact[j]) <= allowed.relative * scale + 1e-40) continue;
      return fmt::format("value {} is {}, but `{}` of its {} senders is {}",
                         what.inputs_begin + at + j, got, name, what.inputs.size(), exact[j]);
    }
  }
  return std::nullopt;
}

} // namespace shoal::actors
