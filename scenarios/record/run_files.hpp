// Reads the files of a run directory that are meant for programs. The process of the run may have
// been killed. Then files end in '.partial', their last line may be cut off, and there is no
// summary.json.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/observe/summary.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// The host in the name of an actor: 'home-3' of 'home-3#0/2'.
inline std::string machine_of(std::string_view actor) {
  return std::string(actor.substr(0, actor.find('#')));
}

/// A duration in a JSON document, which is a whole number of nanoseconds. Errors: the exceptions of
/// nlohmann::json.
template <class Json>
duration ns(const Json& value) {
  return duration{value.template get<std::int64_t>()};
}

/// The path of `name` in `directory`, or of `name`.partial if only this file exists; else empty.
std::optional<std::filesystem::path> whole_or_partial(const std::filesystem::path& directory,
                                                      std::string_view name);

/// Calls `each` with the fields and the text of each complete line of a CSV file, without the
/// header. Returns false if the file does not exist.
bool each_row(
    const std::filesystem::path& directory, std::string_view name,
    const std::function<void(const std::vector<std::string_view>&, std::string_view)>& each);

/// Reads summary.json. Errors: the file cannot be read, or is no summary; the message names it.
result<summary> read_summary(const std::filesystem::path& directory);

/// The rows of metrics.csv, or of the part that a killed process has left.
struct metric_table {
  std::vector<std::string> columns;                     ///< from 'time' on
  std::vector<std::vector<std::optional<double>>> rows; ///< a value for each column

  /// The index of a column; empty if there is none of that name.
  std::optional<std::size_t> column(std::string_view name) const;
};
/// Errors: there is no such file.
result<metric_table> read_metrics(const std::filesystem::path& directory);

/// The fields of the last whole line of metrics.csv by column; empty fields are left out. The map
/// is empty if there is no such line. Errors: the file cannot be read.
result<std::map<std::string, double>> last_metrics(const std::filesystem::path& directory);

/// A row of epochs.csv.
struct recorded_epoch {
  std::optional<double> reached_seconds; ///< time since the run began; empty if never reached
  std::uint64_t samples = 0;             ///< samples computed on the epoch's state
  std::optional<double> loss_train, loss_held_out;
};

/// The rows of epochs.csv by epoch; empty if there is no such file. Errors: the file cannot be
/// read, or has another format.
result<std::map<std::uint64_t, recorded_epoch>> read_epochs(const std::filesystem::path& directory);

/// Calls `each` with the lines of the log `name` that contain one of `marks`; without marks, with
/// all lines. Returns whether the log has an end. The log of a killed process has none and is read
/// as far as it goes. Errors: there is no such log; a line is no JSON; `each` throws an exception
/// of nlohmann's (a field is missing). The message names the file.
result<bool> read_json_lines(const std::filesystem::path& directory, std::string_view name,
                             const std::vector<std::string>& marks,
                             const std::function<void(const nlohmann::json&)>& each);

/// Does the same for the lines of events.jsonl.zst whose "what" is one of `kinds`.
result<bool> read_events(const std::filesystem::path& directory,
                         const std::vector<std::string_view>& kinds,
                         const std::function<void(const nlohmann::json&)>& each);

} // namespace shoal::scenarios
