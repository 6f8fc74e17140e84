// The message of the JSON library about a file that it cannot read.
#pragma once

#include <string_view>

namespace shoal::learn {

/// The message `what` without its beginning, which is about the library itself.
inline std::string_view json_words(std::string_view what) {
  const auto end = what.find("] ");
  return what.substr(end == what.npos ? 0 : end + 2);
}

} // namespace shoal::learn
