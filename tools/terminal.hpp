// The forms of text on a terminal: its width, text that fits on one line, and times.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::tools {

/// The number of columns of the terminal behind a descriptor, at least 20; nothing if the
/// descriptor is no terminal.
std::optional<std::size_t> terminal_columns(int descriptor);

/// `text` (ASCII) with line feeds as '⏎', cut after `columns` columns. A cut text ends in '…'.
/// Requires: columns > 0.
std::string one_line(std::string_view text, std::size_t columns);

/// '42s', '3m05s', '1h00m07s', '2d03h'. Requires: seconds >= 0.
std::string clock_text(double seconds);

/// 'ETA 3m05s'. A unit of `left` is expected to take as long as a unit of `done`, which took
/// `seconds` in all. Requires: done > 0.
std::string eta_text(double seconds, double done, double left);

} // namespace shoal::tools
