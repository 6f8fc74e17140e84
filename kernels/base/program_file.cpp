#include "kernels/base/program_file.hpp"

#include <system_error>
#include <utility>

namespace shoal {

namespace {

std::filesystem::path& given() {
  static std::filesystem::path path;
  return path;
}

} // namespace

std::filesystem::path program_file() {
  if (!given().empty()) return given();
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

void set_program_file(std::filesystem::path file) {
  given() = std::move(file);
}

} // namespace shoal
