#include "tools/scratch_directory.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace shoal::tools {

namespace fs = std::filesystem;

result<scratch_directory> scratch_directory::create() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) return failure{fmt::format("no folder for temporary files: {}", error.message())};
  std::string name = (parent / "shoal-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return failure{
        fmt::format("cannot create a folder in '{}': {}", parent.string(), std::strerror(errno))};
  return scratch_directory(name);
}

scratch_directory::scratch_directory(scratch_directory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

scratch_directory& scratch_directory::operator=(scratch_directory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

scratch_directory::~scratch_directory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

} // namespace shoal::tools
