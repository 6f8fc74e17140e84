// An aggregator turns the members' contributions to a part into its result. A definition names an
// aggregator, makes one for each part, and says what has to be true of its result;
// part_reduction.hpp keeps the books and calls it.
//
// A unit is what is aggregated at once. With `chunk` each chunk is aggregated as soon as all its
// senders have delivered it, and goes back while others come in; a sender that dies half-way is in
// the chunks that it delivered. With `part` the reducer retains the part until it is complete; a
// sender is in all of it or in none of it. Methods that compare members need whole parts.
//
// Calls for each unit: open, add for each sender in member order, close. Order and values decide
// the result alone, so that the same senders give the same bits whichever member reduces. No call
// is made for single values.
//
// To add an aggregator: derive from `aggregator`, write verify(), and add one line to the list in
// aggregators.cpp, or call aggregators().add() when the program starts. `averaging.aggregator` in a
// scenario names it then.
#pragma once

#include "kernels/base/definition_list.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shoal::actors {

enum class aggregation_unit : std::uint8_t { chunk, part };

class aggregator {
public:
  virtual ~aggregator() = default;

  /// A unit of `size` values begins. `weights` of all members of the group: samples; a member of
  /// weight 0 sends nothing.
  virtual void open(std::size_t size, std::span<const std::uint64_t> weights) = 0;
  /// The member's values [size]. They stay where they are until the next open(). Anything may stand
  /// in them: peers send them.
  virtual void add(std::uint32_t member, double weight, std::span<const float> values) = 0;
  /// As if the member had not been added.
  virtual void leave_out(std::uint32_t member) = 0;
  /// Writes the aggregate to `out` [size]. Returns a member whose values cannot be aggregated, if
  /// there is one; `out` is of no use then, and the caller leaves that member out and closes again.
  /// Requires: somebody was added.
  virtual std::optional<std::uint32_t> close(std::span<float> out) = 0;
};

/// How far a result may be from the exact one: rounding, and what lossy codecs change on the way.
struct aggregate_tolerance {
  double relative = 1e-5; ///< of the weighted mean of the contributions' magnitudes
  /// The loss that codecs may cause in of contributions (as they are after a codec that drops
  /// values) and of means, as a fraction of the largest magnitude of a contribution's part
  /// (kernels::largest_loss); and, for float16, of values that are too small for it.
  double loss = 0, mean_loss = 0, loss_of_small = 0, mean_loss_of_small = 0;
  /// Larger magnitudes may be written as this (kernels::largest_value).
  double largest = std::numeric_limits<double>::infinity();
};

/// A stretch of a finished round's result, and all that it was made of.
struct aggregate_claim {
  struct input {
    double weight = 0;
    std::span<const float> values;
  };
  std::vector<input>
      inputs; ///< of the stretch's senders, in member order; with unit `part` over the whole part
  std::uint64_t inputs_begin = 0; ///< index of the inputs' first value in the round's vector
  std::span<const float> result;  ///< the stretch
  std::uint64_t begin = 0;        ///< index of the stretch's first value in the round's vector
  /// Only the values start, start + stride, ... of the stretch are looked at, and its last one.
  std::uint64_t start = 0, stride = 1;
  aggregate_tolerance allowed;

  /// The input's values where the result is.
  std::span<const float> beside_result(const input& of) const {
    return of.values.subspan(begin - inputs_begin, result.size());
  }
};

struct aggregator_definition {
  std::string name;    ///< as scenarios write it
  std::string meaning; ///< one line
  aggregation_unit unit = aggregation_unit::chunk;
  std::function<std::unique_ptr<aggregator>()> make; ///< one for each part
  /// Says how the result is wrong, or nothing. Computed in double precision, independently of the
  /// aggregator. Requires: inputs and a result that are not empty.
  std::function<std::optional<std::string>(const aggregate_claim&)> verify;
};

/// All aggregators of this program.
definition_list<aggregator_definition>& aggregators();
/// The default: the mean weighted by samples.
const aggregator_definition& mean_aggregator();

} // namespace shoal::actors
