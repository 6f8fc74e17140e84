// What a terminal can show: its width, and text that fits on one line of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::tools {

/// Columns of the terminal behind a descriptor, at least 20; nothing if it is none.
std::optional<std::size_t> terminal_columns(int descriptor);

/// `text` (ASCII) with line feeds as '⏎', cut after `columns` columns; a text that was cut ends in '…'.
/// Requires: columns > 0.
std::string one_line(std::string_view text, std::size_t columns);

}  // namespace shoal::tools
