// The formats of other programs in which the history of a run can be written. Each one is a file of
// this folder with a function here, and a line in export_formats.cpp.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/export/recorded_run.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace shoal::scenarios {

struct export_format {
  std::string_view name;    ///< the option of `shoal export` without its dashes
  std::string_view place;   ///< type of the option's value, FILE or DIR
  std::string_view meaning; ///< for the help
  std::string_view usual;   ///< name of the file or folder in the folder `export` of a run
  /// Writes `run` to `to`, which is replaced if it is a file. Returns one line about the content.
  /// Errors: `to` cannot be written; the message names it.
  result<std::string> (*write)(const recorded_run& run, const std::filesystem::path& to);
};

std::span<const export_format> export_formats();

// perfetto.cpp, and so on.
export_format perfetto_format();
export_format tensorboard_format();
export_format csv_format();
export_format openmetrics_format();
export_format pcapng_format();

} // namespace shoal::scenarios
