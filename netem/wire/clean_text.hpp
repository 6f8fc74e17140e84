// Makes text from other hosts safe to print and to put into JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

/// Copies valid UTF-8, and writes every other byte as \xNN. Control characters become \xNN as well,
/// and so do the characters that change the direction of text or end a line. A text longer than
/// `most` bytes ends with '...'.
std::string clean_text(std::string_view text, std::size_t most = 500);

} // namespace shoal::netem::wire
