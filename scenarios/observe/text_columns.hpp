// The width of a text in a table for a terminal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace shoal::scenarios {

/// The columns that `text` takes: one for each character of UTF-8. Tables have no wide ones.
inline std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

} // namespace shoal::scenarios
