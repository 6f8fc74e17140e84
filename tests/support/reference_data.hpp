// Texts, models and expected results that the project does not ship, such as the real tokenizer of
// sahajBERT. Tests that need them skip without them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace shoal {

/// The folder of the data: $SHOAL_DATA, or `shared/data` in a folder above this one. Empty if there
/// is none.
inline std::filesystem::path reference_data() {
  namespace fs = std::filesystem;
  if (const char* given = std::getenv("SHOAL_DATA"); given != nullptr && *given != '\0')
    return given;
  for (auto at = fs::current_path();; at = at.parent_path()) {
    if (fs::is_directory(at / "shared" / "data")) return at / "shared" / "data";
    if (at == at.parent_path()) return {};
  }
}

/// The file `name` of that folder; empty if it is not there.
inline std::filesystem::path reference_file(const std::string& name) {
  const auto folder = reference_data();
  if (folder.empty() || !std::filesystem::exists(folder / name)) return {};
  return folder / name;
}

inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace shoal

/// Names the file, or ends the running test case as skipped (tests/support/skip.hpp).
#define SHOAL_NEEDS_DATA(variable, name)                                                           \
  const auto variable = ::shoal::reference_file(name);                                             \
  if (variable.empty()) SHOAL_SKIP("no " name " in $SHOAL_DATA or ../shared/data")
