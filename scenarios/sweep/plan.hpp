// The plan of a sweep: a scenario, a grid of varied options, and seeds. A point is one combination
// of values. A cell is a point with a seed, and so one run. Points and cells have numbers, by which
// a sweep stores its results. The last varied option changes fastest; the seeds of a point follow
// each other.
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
  std::string scenario;             ///< absolute path of the file
  std::vector<std::string> sets;    ///< arguments of --set
  std::vector<varied> vary;         ///< in the order of the command line
  std::vector<std::uint64_t> seeds; ///< empty while the plan is made: the scenario's own seed
  std::vector<std::string> metrics; ///< columns of the table; empty: the default columns
  std::string digest;               ///< hexadecimal digest of the resolved scenarios of all points
  std::string build;                ///< version and commit of the program that made the plan
  bool operator==(const sweep_plan&) const = default;

  std::size_t points() const;
  std::size_t cells() const { return points() * seeds.size(); }
  std::size_t point_of(std::size_t cell) const { return cell / seeds.size(); }
  std::uint64_t seed_of(std::size_t cell) const { return seeds[cell % seeds.size()]; }
  /// Returns, for each varied option, the index of the value that the point has.
  std::vector<std::size_t> choices(std::size_t point) const;
  /// Returns the --set arguments of a point, without its seed.
  std::vector<std::string> sets_of(std::size_t point) const;
  /// Returns the point as text: 'averaging.group_size=4 peers.home.up=5Mbit'.
  std::string label_of(std::size_t point) const;
};

/// Returns the name of a cell's folder: its number, with leading zeros.
std::string cell_name(const sweep_plan& plan, std::size_t cell);

/// Errors: nothing varies; an option varies twice or is also set; the seed varies as an option;
/// the grid has more than most_cells.
result<void> check_grid(const sweep_plan& plan);

/// The result of loading the scenario of every point.
struct checked_plan {
  std::vector<diagnostic> errors;   ///< errors of the first wrong point
  std::vector<diagnostic> warnings; ///< warnings of all points, each once
  std::size_t wrong_point = 0;
  std::string digest;            ///< set when there are no errors
  std::string first_scenario;    ///< resolved scenario of the first point
  std::string name, world;       ///< name and world of the first point
  std::uint64_t seed = 1;        ///< seed of the first point
  bool expects_baseline = false; ///< an expectation asks for the loss of one machine
};
checked_plan check_points(const sweep_plan& plan);

/// Writes sweep.yaml. read_plan() gives an equal plan back.
std::string to_yaml(const sweep_plan& plan);
/// Errors: the text is no plan; the message names the missing key.
result<sweep_plan> read_plan(std::string_view yaml);

/// Returns a sentence that says how `now` differs from the plan of a directory, or nothing when
/// both have the same cells. The columns of the table may differ. `recorded_scenario` and
/// `scenario` are the resolved scenarios of the first points.
std::optional<std::string> difference(const sweep_plan& recorded,
                                      const std::string& recorded_scenario, const sweep_plan& now,
                                      const std::string& scenario);

} // namespace shoal::scenarios
