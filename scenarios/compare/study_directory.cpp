#include "scenarios/compare/study_directory.hpp"

#include "scenarios/observe/run_directory.hpp"
#include "scenarios/schema/document.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {

result<void> refuse_study(const std::filesystem::path& directory, std::string_view what) {
  const auto file = directory / "run.yaml";
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  const auto text = read_file(file);
  if (!text) return {};
  const auto parsed = parse_document(*text);
  if (!parsed.root || !parsed.root->find("averaging_study")) return {};
  return failure{fmt::format("'{}' is the directory of a study of averaging, of which there is no "
                             "{}; 'shoal run {}' repeats the study",
                             directory.string(), what, file.string())};
}

} // namespace shoal::scenarios
