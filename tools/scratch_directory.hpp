// A temporary directory, which the destructor removes.
#pragma once

#include "kernels/base/result.hpp"

#include <filesystem>

namespace shoal::tools {

class scratch_directory {
public:
  /// Creates one in the system's folder for temporary files. Errors: it cannot be created.
  static result<scratch_directory> create();
  ~scratch_directory();
  scratch_directory(scratch_directory&& other) noexcept;
  scratch_directory& operator=(scratch_directory&& other) noexcept;

  /// The path of an entry in it, which does not exist yet.
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

private:
  explicit scratch_directory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

} // namespace shoal::tools
