#include "tools/shown_runs.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/compare/run_comparison.hpp"
#include "scenarios/compare/run_files.hpp"
#include "scenarios/page/run_reader.hpp"

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;
using steady = std::chrono::steady_clock;

bool is_run(const fs::path& directory) {
  return scenarios::whole_or_partial(directory, "run.yaml") || scenarios::whole_or_partial(directory, "metrics.csv");
}

std::map<std::string, std::uintmax_t> sizes_of(const fs::path& directory) {
  std::map<std::string, std::uintmax_t> out;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (std::error_code ignored; entry->is_regular_file(ignored)) out[entry->path().filename().string()] = entry->file_size(ignored);
  out.erase("report.html");
  return out;
}

/// Runs in `path`, itself or its folders.
result<std::vector<fs::path>> runs_in(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return failure{fmt::format("'{}' is no directory", path.string())};
  if (is_run(path)) return std::vector{path};
  std::vector<fs::path> out;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (std::error_code ignored; entry->is_directory(ignored) && is_run(entry->path())) out.push_back(entry->path());
  std::sort(out.begin(), out.end());
  if (out.empty()) return failure{fmt::format("there is no run in '{}': neither files of one (run.yaml, metrics.csv) nor folders of some", path.string())};
  return out;
}

/// How far `actual` was from `predicted`, or why that cannot be said.
std::string compared(const fs::path& predicted, const fs::path& actual) {
  auto out = scenarios::compare_runs(predicted, actual, {}, true);
  if (!out) return nlohmann::json{{"error", out.error()}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::ordered_json::parse(scenarios::to_json(*out)).dump();
}

result<void> read_into(shown_runs::run& run, const fs::path* predicted) {
  const auto begun = steady::now();
  run.sizes = sizes_of(run.directory);
  auto view = scenarios::read_run_view(run.directory);
  if (!view) return failure{view.error()};
  run.sections = (*view)->sections();
  run.over = run.sizes.contains("summary.json");
  if (predicted != nullptr) run.sections.push_back({"comparison", compared(*predicted, run.directory)});
  run.next = steady::now() + std::max<steady::duration>(std::chrono::seconds(2), 10 * (steady::now() - begun));
  return {};
}

}  // namespace

result<shown_runs> shown_runs::read(const std::vector<std::string>& paths) {
  shown_runs out;
  for (const auto& path : paths) {
    auto directories = runs_in(path);
    if (!directories) return failure{directories.error()};
    for (auto& directory : *directories) {
      auto& run = out.all_.emplace_back();
      run.title = directory.lexically_normal().string();
      if (run.title.size() > 1 && run.title.ends_with('/')) run.title.pop_back();
      run.directory = std::move(directory);
    }
  }
  for (std::size_t i = 0; i < out.all_.size(); ++i)
    if (auto read = read_into(out.all_[i], i > 0 ? &out.all_[0].directory : nullptr); !read) return failure{read.error()};
  return out;
}

std::vector<std::size_t> shown_runs::read_again() {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    auto& run = all_[i];
    if (run.over || steady::now() < run.next) continue;
    run.next = steady::now() + std::chrono::seconds(2);
    if (sizes_of(run.directory) == run.sizes) continue;
    // A file may be cut off where it is being written just now: the next time tells.
    if (auto read = read_into(run, i > 0 ? &all_[0].directory : nullptr)) out.push_back(i);
  }
  return out;
}

}  // namespace shoal::tools
