// Cuts a document of any language into sentences, for pre-training with pairs of segments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

/// A sentence ends after one of the characters `ends` (UTF-8), and after an empty line. An ASCII
/// character ends a sentence only before white space or at the end, so "3.5" stays whole. Runs of
/// white space become one space, and sentences of nothing else are left out. Bytes that are no
/// UTF-8 are kept. Complexity: linear in the text.
std::vector<std::string> split_sentences(std::string_view document, std::string_view ends);

/// The longest beginning of `text` with at most `most` bytes that cuts no UTF-8 character.
std::string_view cut_utf8(std::string_view text, std::size_t most) noexcept;

} // namespace shoal::learn
