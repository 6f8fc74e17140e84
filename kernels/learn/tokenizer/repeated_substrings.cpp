#include "kernels/learn/tokenizer/repeated_substrings.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>

namespace shoal::learn {

namespace {

/// All words one behind the other, each with a zero after it.
struct flat_text {
  std::u32string characters;
  std::vector<std::uint32_t> word_of,
      first_of; ///< the word of each place, the first place of each word

  explicit flat_text(std::span<const counted_word> words) {
    std::size_t n = 0;
    for (const auto& each : words) n += each.text.size() + 1;
    SHOAL_CHECK(n < 0xffffffff, "suffixes are counted in 32 bits");
    characters.reserve(n);
    word_of.reserve(n);
    for (std::size_t i = 0; i < words.size(); ++i) {
      first_of.push_back(static_cast<std::uint32_t>(characters.size()));
      characters.append(words[i].text).push_back(0);
      word_of.resize(characters.size(), static_cast<std::uint32_t>(i));
    }
  }
};

/// Sorts suffixes by their characters from `depth` to `longest`.
class suffix_sorter {
public:
  suffix_sorter(const flat_text& text, std::size_t longest) : text_(text), longest_(longest) {}

  void sort(std::span<std::uint32_t> suffixes) {
    struct task {
      std::span<std::uint32_t> suffixes;
      std::size_t depth;
    };
    std::vector<task> tasks{{suffixes, 0}};
    while (!tasks.empty()) {
      const auto [some, depth] = tasks.back();
      tasks.pop_back();
      if (some.size() < 2 || depth >= longest_) continue;
      if (some.size() < 12) {
        insert(some, depth);
        continue;
      }
      const auto pivot =
          middle(at(some.front(), depth), at(some[some.size() / 2], depth), at(some.back(), depth));
      std::size_t less = 0, i = 0, greater = some.size();
      while (i < greater) {
        const auto c = at(some[i], depth);
        if (c < pivot)
          std::swap(some[less++], some[i++]);
        else if (c > pivot)
          std::swap(some[i], some[--greater]);
        else
          ++i;
      }
      tasks.push_back({some.first(less), depth});
      tasks.push_back({some.subspan(greater), depth});
      // Ends of words are all different, whatever follows them.
      if (pivot != 0) tasks.push_back({some.subspan(less, greater - less), depth + 1});
    }
  }

private:
  char32_t at(std::uint32_t suffix, std::size_t depth) const {
    return text_.characters[suffix + depth];
  }
  static char32_t middle(char32_t a, char32_t b, char32_t c) {
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
  }
  bool less(std::uint32_t a, std::uint32_t b, std::size_t depth) const {
    for (; depth < longest_; ++depth) {
      const auto x = at(a, depth), y = at(b, depth);
      if (x != y) return x < y;
      if (x == 0) return false;
    }
    return false;
  }
  void insert(std::span<std::uint32_t> some, std::size_t depth) const {
    for (std::size_t i = 1; i < some.size(); ++i)
      for (auto j = i; j > 0 && less(some[j], some[j - 1], depth); --j)
        std::swap(some[j], some[j - 1]);
  }

  const flat_text& text_;
  std::size_t longest_;
};

} // namespace

std::vector<repeated_substring> repeated_substrings(std::span<const counted_word> words,
                                                    std::size_t longest) {
  const flat_text text(words);
  std::vector<std::uint32_t> suffixes;
  suffixes.reserve(text.characters.size());
  for (std::uint32_t i = 0; i < text.characters.size(); ++i)
    if (text.characters[i] != 0) suffixes.push_back(i);
  // One character more tells a substring of the longest length from its extensions.
  suffix_sorter(text, longest + 1).sort(suffixes);

  const auto common = [&](std::uint32_t a, std::uint32_t b) {
    std::size_t out = 0;
    while (out <= longest && text.characters[a + out] == text.characters[b + out] &&
           text.characters[a + out] != 0)
      ++out;
    return out;
  };
  std::vector<std::uint64_t> before{0}; // counts of the suffixes before each
  before.reserve(suffixes.size() + 1);
  for (const auto each : suffixes)
    before.push_back(before.back() + words[text.word_of[each]].count);

  struct interval {
    std::size_t depth, begin;
  };
  std::vector<repeated_substring> out;
  std::vector<interval> open{{0, 0}};
  std::size_t depth_before = 0;
  for (std::size_t i = 1; i <= suffixes.size(); ++i) {
    const auto depth = i < suffixes.size() ? common(suffixes[i - 1], suffixes[i]) : 0;
    auto begin = i - 1;
    // The end of a word that occurs more than once is an inner node without any other suffix.
    const auto last = suffixes[begin], of = text.word_of[last];
    const auto rest = text.first_of[of] + words[of].text.size() - last;
    if (words[of].count > 1 && rest >= 2 && rest <= longest && rest > depth && rest > depth_before)
      out.push_back(
          {of, last - text.first_of[of], static_cast<std::uint32_t>(rest), words[of].count});
    depth_before = depth;
    while (open.back().depth > depth) {
      const auto done = open.back();
      open.pop_back();
      begin = done.begin;
      if (done.depth < 2 || done.depth > longest) continue;
      const auto place = suffixes[done.begin], word = text.word_of[place];
      out.push_back({word, place - text.first_of[word], static_cast<std::uint32_t>(done.depth),
                     before[i] - before[done.begin]});
    }
    if (open.back().depth < depth) open.push_back({depth, begin});
  }
  const auto view = [&](const repeated_substring& of) {
    return std::u32string_view(words[of.word].text).substr(of.begin, of.length);
  };
  std::sort(out.begin(), out.end(),
            [&](const auto& a, const auto& b) { return view(a) < view(b); });
  return out;
}

} // namespace shoal::learn
