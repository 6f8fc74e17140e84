#include "tools/terminal.hpp"

#include <sys/ioctl.h>

#include <algorithm>

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

}  // namespace shoal::tools
