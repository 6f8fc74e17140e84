#include "scenarios/compare/find_model.hpp"

#include "scenarios/observe/epoch_file.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/record/study_directory.hpp"
#include "scenarios/schema/option_diff.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <utility>

namespace shoal::scenarios {

namespace fs = std::filesystem;

result<fs::path> model_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    return failure{fmt::format("'{}' does not exist", path.string())};
  if (status.type() == fs::file_type::none)
    return failure{fmt::format("cannot use '{}': {}", path.string(), error.message())};
  if (status.type() != fs::file_type::directory) return path;
  const fs::path inside = path / "final.ckpt";
  if (fs::exists(inside, error)) return inside;
  if (const auto saved = checkpoints_of(path); !saved.empty())
    return failure{fmt::format("'{}' has no final.ckpt: the run has not ended. Its last checkpoint "
                               "is '{}'",
                               path.string(), saved.back().string())};
  if (!fs::exists(path / "run.yaml", error))
    return failure{
        fmt::format("'{}' has no final.ckpt, and is no directory of a run. Name the file "
                    "of a model, or the directory of a run",
                    path.string())};
  if (auto run = require_history(path, "model"); !run) return failure{run.error()};
  if (const auto yaml = read_file(path / "run.yaml")) {
    const auto options = option_values(parse_document(*yaml));
    const auto kind = options.find("workload.kind");
    const auto* of = kind == options.end() ? nullptr : workloads().find(kind->second);
    if (of != nullptr && of->describe_model == nullptr)
      return failure{fmt::format(
          "the run in '{}' has workload.kind {}, which trains no model that writes text",
          path.string(), kind->second)};
  }
  return failure{fmt::format("'{}' has no final.ckpt: the run did not end, or trained nothing",
                             path.string())};
}

std::vector<fs::path> checkpoints_of(const fs::path& directory) {
  std::map<std::uint64_t, fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory / "checkpoints", error), end; !error && entry != end;
       entry.increment(error))
    if (const auto epoch = epoch_of(entry->path().filename().string(), ".ckpt"))
      found.emplace(*epoch, entry->path());
  std::vector<fs::path> out;
  for (auto& [epoch, path] : found) out.push_back(std::move(path));
  return out;
}

} // namespace shoal::scenarios
