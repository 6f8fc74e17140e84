#include "scenarios/runner/live_export.hpp"

#include "scenarios/export/export_formats.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace shoal::scenarios {

namespace {

namespace fs = std::filesystem;
using steady = std::chrono::steady_clock;

const export_format& format_of(export_kind kind) {
  return export_formats()[static_cast<std::size_t>(kind)];
}

} // namespace

live_export::live_export(record_options what, fs::path directory)
    : what_(std::move(what)), directory_(std::move(directory)), next_(what_.export_every) {
  std::error_code ignored;
  for (const export_format& each : export_formats())
    fs::remove_all(directory_ / "export" / each.usual, ignored);
}

bool live_export::due(duration now) {
  if (what_.exports.empty() || what_.export_every == duration::zero() || now < next_) return false;
  if (spent_ * 10 > steady::now() - begun_) return false;
  next_ = (now / what_.export_every + 1) * what_.export_every;
  return run_goes_on_ = true;
}

result<void> live_export::write() {
  auto done = write_all();
  if (!done && run_goes_on_ && !std::exchange(warned_, true)) {
    // The live line may stand on the terminal.
    const bool terminal = isatty(STDERR_FILENO) != 0;
    fmt::print(stderr, "{}warning: {}; the run goes on, and tries again every {}\n",
               terminal ? "\r\x1b[K" : "", done.error(), to_string(what_.export_every));
  }
  run_goes_on_ = false;
  return done;
}

result<void> live_export::write_all() {
  if (what_.exports.empty()) return {};
  const auto begun = steady::now();
  const auto run = read_recorded_run(directory_);
  if (!run) return failure{"record.export: " + run.error()};
  const auto folder = directory_ / "export";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return failure{
        fmt::format("record.export: '{}' cannot be made: {}", folder.string(), error.message())};
  for (const export_kind kind : what_.exports) {
    const export_format& format = format_of(kind);
    if (const auto written = format.write(*run, folder / format.usual); !written)
      return failure{"record.export: " + written.error()};
  }
  spent_ += steady::now() - begun;
  return {};
}

} // namespace shoal::scenarios
