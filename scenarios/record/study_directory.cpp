#include "scenarios/record/study_directory.hpp"

#include "scenarios/observe/run_directory.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/document.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {

result<void> require_history(const std::filesystem::path& directory, std::string_view what) {
  const auto file = directory / "run.yaml";
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  const auto text = read_file(file);
  if (!text) return {};
  const auto parsed = parse_document(*text);
  if (!parsed.root) return {};
  for (const auto* kind : programs().kinds()) {
    const auto& program = static_cast<const program_definition&>(*kind);
    if (program.on_runner() || !parsed.root->find(program.name)) continue;
    return failure{fmt::format("'{}' is the directory of {}, of which there is no {}; 'shoal run "
                               "{}' repeats it",
                               directory.string(), program.title, what, file.string())};
  }
  return {};
}

} // namespace shoal::scenarios
