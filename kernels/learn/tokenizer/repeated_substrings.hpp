// Every substring of some words that occurs twice or more and is followed by different things: the
// inner nodes of their suffix tree. They are found in a sorted array of suffixes, of which only the
// first characters are compared, since longer substrings are not wanted.
// Source: Abouelhoda, Kurtz and Ohlebusch, "Replacing suffix trees with enhanced suffix arrays",
// Journal of Discrete Algorithms 2 (2004), section 3 (lcp-intervals); sorting: Bentley and
// Sedgewick, "Fast algorithms for sorting and searching strings", SODA 1997.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::learn {

struct counted_word {
  std::u32string text{};
  std::uint64_t count = 0;
};

struct repeated_substring {
  std::uint32_t word = 0, begin = 0, length = 0; ///< one place of it
  std::uint64_t count = 0;                       ///< in all words, with their counts
};

/// Substrings of 2 to `longest` characters, in lexicographic order of code points. The end of a
/// word counts as a different follower each time that the word occurs. Requires: less than 2^32
/// characters in all. Complexity: O(n (longest + log n)) for n characters.
std::vector<repeated_substring> repeated_substrings(std::span<const counted_word> words,
                                                    std::size_t longest);

} // namespace shoal::learn
