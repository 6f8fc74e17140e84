// What a terminal can show: its width, text that fits on one line of it, and times as they stand
// there.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::tools {

/// Columns of the terminal behind a descriptor, at least 20; nothing if it is none.
std::optional<std::size_t> terminal_columns(int descriptor);

/// `text` (ASCII) with line feeds as '⏎', cut after `columns` columns; a text that was cut ends in
/// '…'. Requires: columns > 0.
std::string one_line(std::string_view text, std::size_t columns);

/// '42s', '3m05s', '1h00m07s', '2d03h'. Requires: seconds >= 0.
std::string clock_text(double seconds);

/// 'ETA 3m05s': what is `left` takes as long, for each, as what was `done` in `seconds`. Requires:
/// done > 0.
std::string eta_text(double seconds, double done, double left);

} // namespace shoal::tools
