// Exports of a run for other programs (scenarios/export), in the folder `export` of its directory.
// They are written now and then while the run goes on, and at its end. The run itself does not
// notice. Each export reads the run's files and writes its own anew. Exports take a tenth of the
// wall time at most: one that would take more waits.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/schema/scenario.hpp"

#include <chrono>
#include <filesystem>

namespace shoal::scenarios {

class live_export {
public:
  /// Removes what an earlier run has exported to `directory`.
  live_export(record_options what, std::filesystem::path directory);

  /// Whether exports are due at the time `now` of the run. The caller then flushes the run's files
  /// and calls write().
  bool due(duration now);
  /// Writes all formats. Errors: the first file that cannot be read or written. The first error of
  /// a write() that was due is also printed as a warning, because the run goes on.
  result<void> write();

private:
  result<void> write_all();

  record_options what_;
  std::filesystem::path directory_;
  duration next_{};
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration spent_{};
  bool run_goes_on_ = false, warned_ = false;
};

} // namespace shoal::scenarios
