// An aggregator turns the members' contributions to a part into its result. A definition names an
// aggregator, makes one for each part, and verifies its results. part_reduction.hpp collects the
// contributions and calls the aggregator.
//
// A unit is the piece that is aggregated at once. With `chunk`, each chunk is aggregated and sent
// back as soon as all senders have delivered it. A sender that dies half-way is then in the chunks
// that it delivered. With `part`, the reducer keeps the part until it is complete, and a sender is
// in all of it or in none of it. Methods that compare members need whole parts.
//
// Calls for each unit: open, add for each sender in member order, close. Order and values alone
// decide the result, so that the same senders give the same bits at every reducer. No call is made
// for single values.
//
// To add an aggregator: derive from `aggregator`, or from `robust_aggregator`
// (robust_aggregator.hpp) if it works on whole units. Write verify(), list the options, and add one
// line to the list in aggregators.cpp, or call aggregators().add() when the program starts.
// Scenarios select it by name with `averaging.aggregator`.
#pragma once

#include "actors/averaging/aggregator_options.hpp"
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

  /// Begins a unit of `size` values. `weights` are the sample counts of all members; a member of
  /// weight 0 sends nothing.
  virtual void open(std::size_t size, std::span<const std::uint64_t> weights) = 0;
  /// Adds a member's values [size]. They stay valid until the next open(). Peers send them, so any
  /// bits may be in them.
  virtual void add(std::uint32_t member, double weight, std::span<const float> values) = 0;
  /// Removes a member, as if it had never been added.
  virtual void leave_out(std::uint32_t member) = 0;
  /// Writes the aggregate to `out` [size]. If a member's values cannot be aggregated, returns that
  /// member, and `out` is undefined. The caller then leaves that member out and closes again.
  /// Requires: at least one member was added.
  virtual std::optional<std::uint32_t> close(std::span<float> out) = 0;
};

/// The error that a result may have, from rounding and from lossy codecs.
struct aggregate_tolerance {
  double relative = 1e-5; ///< times the weighted mean of the contributions' magnitudes
  /// The losses that codecs may cause in contributions (as they are after a codec that drops
  /// values) and in means. Each is a fraction of the largest magnitude in a contribution's part
  /// (kernels::largest_loss). `*_of_small` are absolute, for values too small for float16.
  double loss = 0, mean_loss = 0, loss_of_small = 0, mean_loss_of_small = 0;
  /// A codec may write larger magnitudes as this value (kernels::largest_value).
  double largest = std::numeric_limits<double>::infinity();
};

/// A stretch of a finished round's result, and the inputs of it.
struct aggregate_claim {
  struct input {
    double weight = 0;
    std::span<const float> values;
    std::uint32_t member = 0; ///< index in the group
  };
  /// The inputs of the stretch's senders, in member order. With unit `part` they span the whole
  /// part.
  std::vector<input> inputs;
  std::uint64_t inputs_begin = 0; ///< index of the inputs' first value in the round's vector
  std::span<const float> result;  ///< the stretch
  std::uint64_t begin = 0;        ///< index of the stretch's first value in the round's vector
  /// The verified values of the stretch are start, start + stride, ..., and the last one.
  std::uint64_t start = 0, stride = 1;
  aggregate_tolerance allowed;
  aggregation_setting setting; ///< the one that the aggregator had

  /// The values of an input at the positions of the result.
  std::span<const float> beside_result(const input& of) const {
    return of.values.subspan(begin - inputs_begin, result.size());
  }
};

/// The bounds within which a robust method keeps its promise.
struct robustness {
  std::uint64_t least_members = 1; ///< smallest group that the options are made for
  std::uint64_t faulty = 0;        ///< the most faulty members
};

struct aggregator_definition {
  std::string name;    ///< the name in scenarios
  std::string meaning; ///< one line
  aggregation_unit unit = aggregation_unit::chunk;
  /// Makes one for each part.
  std::function<std::unique_ptr<aggregator>(const aggregation_setting&)> make;
  /// Describes an error in the result, if there is one. Computes in double precision, without the
  /// aggregator. Requires: inputs and result are not empty.
  std::function<std::optional<std::string>(const aggregate_claim&)> verify;
  std::vector<aggregator_option> options{};
  /// The faulty members that a group of `members` bears, if all weigh the same. Null: none, as for
  /// the mean.
  std::function<robustness(std::uint64_t members, const aggregation_setting&)> bears{};
};

/// All aggregators of this program.
definition_list<aggregator_definition>& aggregators();
/// The default: the mean weighted by samples.
const aggregator_definition& mean_aggregator();

} // namespace shoal::actors
