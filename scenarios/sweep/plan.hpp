// The plan of a sweep: a scenario, the grid of what is varied in it, and seeds. A point is one
// combination of values, a cell is a point with a seed: one run. Both are numbered, the last varied
// option changing fastest and seeds within a point; all that a sweep keeps goes by these numbers.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/sweep/vary.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

struct sweep_plan {
  std::string scenario;             ///< path of the file, absolute
  std::vector<std::string> sets;    ///< as --set
  std::vector<varied> vary;         ///< in the order of the command line
  std::vector<std::uint64_t> seeds; ///< empty only while the plan is made: the scenario's
  std::vector<std::string> metrics; ///< columns of the table; empty: the usual ones
  std::string digest;               ///< of the resolved scenarios of all points, hexadecimal
  std::string build;                ///< version and commit of the program that made the plan
  bool operator==(const sweep_plan&) const = default;

  std::size_t points() const;
  std::size_t cells() const { return points() * seeds.size(); }
  std::size_t point_of(std::size_t cell) const { return cell / seeds.size(); }
  std::uint64_t seed_of(std::size_t cell) const { return seeds[cell % seeds.size()]; }
  /// For each varied option, which of its values a point has.
  std::vector<std::size_t> choices(std::size_t point) const;
  /// The --set arguments of a point, its seed apart.
  std::vector<std::string> sets_of(std::size_t point) const;
  /// 'averaging.group_size=4 peers.home.up=5Mbit'.
  std::string label_of(std::size_t point) const;
};

/// The folder of a cell: its number, with zeros before it.
std::string cell_name(const sweep_plan& plan, std::size_t cell);

/// Errors: nothing to sweep, one option varied twice or also set, the seed among them, more than
/// most_cells.
result<void> check_grid(const sweep_plan& plan);

/// What came of loading the scenario of every point.
struct checked_plan {
  std::vector<diagnostic> errors;   ///< of the first point that is wrong
  std::vector<diagnostic> warnings; ///< each once
  std::size_t wrong_point = 0;
  std::string digest;            ///< if there are no errors
  std::string first_scenario;    ///< the first point's, resolved
  std::string name, world;       ///< the first point's
  std::uint64_t seed = 1;        ///< the first point's
  bool expects_baseline = false; ///< a run is asked about the loss of one machine
};
checked_plan check_points(const sweep_plan& plan);

/// sweep.yaml. Reading it gives an equal plan.
std::string to_yaml(const sweep_plan& plan);
/// Errors: it is no plan; the message says what is missing.
result<sweep_plan> read_plan(std::string_view yaml);

/// What is another in `now` than in the plan of a directory, a sentence; nothing if their cells are
/// the same. The columns of the table may differ. `recorded_scenario`, `scenario`: resolved, of the
/// first point.
std::optional<std::string> difference(const sweep_plan& recorded,
                                      const std::string& recorded_scenario, const sweep_plan& now,
                                      const std::string& scenario);

} // namespace shoal::scenarios
