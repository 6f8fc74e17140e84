#include "tools/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>

namespace shoal::tools {

std::optional<std::size_t> terminal_columns(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return std::max<std::size_t>(size.ws_col, 20);
}

std::string one_line(std::string_view text, std::size_t columns) {
  const bool cut = text.size() > columns;
  std::string out;
  for (char c : text.substr(0, cut ? columns - 1 : columns)) {
    if (c == '\n')
      out += "⏎";
    else
      out += c;
  }
  return cut ? out + "…" : out;
}

std::string clock_text(double seconds) {
  auto whole = static_cast<long long>(seconds);
  if (whole >= 86400) return fmt::format("{}d{:02}h", whole / 86400, whole % 86400 / 3600);
  if (whole >= 3600)
    return fmt::format("{}h{:02}m{:02}s", whole / 3600, whole % 3600 / 60, whole % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

std::string eta_text(double seconds, double done, double left) {
  return fmt::format("ETA {}", clock_text(std::round(std::max(0.0, seconds * left / done))));
}

} // namespace shoal::tools
