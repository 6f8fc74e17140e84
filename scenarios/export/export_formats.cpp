#include "scenarios/export/export_formats.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace shoal::scenarios {

std::span<const export_format> export_formats() {
  static const export_format all[] = {perfetto_format(), tensorboard_format(), csv_format(),
                                      openmetrics_format(), pcapng_format()};
  return all;
}

result<void> write_export(const std::filesystem::path& to, std::string_view content) {
  std::ofstream out(to, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out.flush())
    return failure{fmt::format("'{}' cannot be written: {}", to.string(), std::strerror(errno))};
  return {};
}

} // namespace shoal::scenarios
