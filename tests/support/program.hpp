// Runs the program as a shell would, and takes what it says.
#pragma once

#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace shoal {

struct program_outcome {
  int status = -1;  // 128: ended by a signal
  std::string text; // stdout and stderr
  bool has(const std::string& part) const { return text.find(part) != std::string::npos; }
};

/// `shoal ARGUMENTS` in the folder `where`, which is its home as well.
inline program_outcome run_program(const std::filesystem::path& where,
                                   const std::string& arguments) {
  const auto command = fmt::format("cd '{0}' && HOME='{0}' '{1}' {2} 2>&1 </dev/null",
                                   where.string(), SHOAL_PROGRAM, arguments);
  program_outcome out;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  for (std::size_t count; (count = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    out.text.append(buffer, count);
  const int status = ::pclose(pipe);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return out;
}

} // namespace shoal
