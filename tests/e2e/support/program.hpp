// Runs the built program as a user would and gives back what it said.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace shoal::e2e {

struct program_result {
  int exit = -1; ///< 1000 + signal if a signal killed it
  std::string out, err;
};

struct program_options {
  std::vector<std::string> environment; ///< NAME=value, added
  std::string stdout_to;                ///< a path instead of the pipe
  long file_size_limit = -1;            ///< bytes a file may have, as with a full disk; -1: none
  /// Signal this after `signal_when` exists.
  int signal = 0;
  std::filesystem::path signal_when;
};

program_result run_program(const std::vector<std::string>& arguments,
                           const program_options& options = {});

/// An empty folder that goes away with the object.
class scratch_folder {
public:
  scratch_folder();
  ~scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const noexcept { return path_; }

private:
  std::filesystem::path path_;
};

std::string slurp(const std::filesystem::path& path);
void spill(const std::filesystem::path& path, const std::string& text);

} // namespace shoal::e2e
