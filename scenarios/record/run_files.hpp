// Reads what a run directory has for programs, also one whose process was killed: then files end in
// '.partial', their last line may be cut off, and summary.json is not there.
#pragma once

#include "kernels/base/result.hpp"
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

/// `name` in `directory`, or `name`.partial if only that is there; nothing if neither is.
std::optional<std::filesystem::path> whole_or_partial(const std::filesystem::path& directory,
                                                      std::string_view name);

/// summary.json. Errors: it cannot be read, or is none; the message names the file.
result<summary> read_summary(const std::filesystem::path& directory);

/// The fields of the last whole line of metrics.csv by their column; empty fields are left out.
/// Nothing without such a line. Errors: the file cannot be read.
result<std::map<std::string, double>> last_metrics(const std::filesystem::path& directory);

/// A row of epochs.csv.
struct recorded_epoch {
  std::optional<double> reached_seconds; ///< since the run began; nothing: it was skipped
  std::uint64_t samples = 0;             ///< computed on its state
  std::optional<double> loss_train, loss_held_out;
};

/// By epoch. Empty if there is no epochs.csv. Errors: it cannot be read, or is none.
result<std::map<std::uint64_t, recorded_epoch>> read_epochs(const std::filesystem::path& directory);

/// Calls `each` with the lines of the log `name` that hold one of `marks`, with all if there are
/// none. Returns whether the log has an end: that of a process that was killed is read as far as it
/// goes. Errors: there is none, a line is no JSON, or `each` throws nlohmann's exceptions (a field
/// is missing); the message names the file.
result<bool> read_json_lines(const std::filesystem::path& directory, std::string_view name,
                             const std::vector<std::string>& marks,
                             const std::function<void(const nlohmann::json&)>& each);

/// The same of the lines of events.jsonl.zst whose "what" is one of `kinds`.
result<bool> read_events(const std::filesystem::path& directory,
                         const std::vector<std::string_view>& kinds,
                         const std::function<void(const nlohmann::json&)>& each);

} // namespace shoal::scenarios
