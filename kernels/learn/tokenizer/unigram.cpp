#include "kernels/learn/tokenizer/unigram.hpp"

#include "kernels/learn/tokenizer/unicode.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace shoal::learn {

namespace {

constexpr double unknown_penalty = 10;

std::vector<std::string> texts_of(const unigram_description& from) {
  std::vector<std::string> out;
  out.reserve(from.pieces.size());
  for (const auto& each : from.pieces) out.push_back(each.first);
  return out;
}

std::vector<std::u32string> characters_of(const unigram_description& from) {
  std::vector<std::u32string> out;
  out.reserve(from.pieces.size());
  for (const auto& each : from.pieces) out.push_back(unicode::decoded(each.first));
  return out;
}

} // namespace

/// The memory of one segmentation, kept between pieces.
struct unigram::scratch {
  struct place {
    double score;
    std::int32_t token; // that ends here; -1: none does
    std::uint32_t length;
  };
  std::vector<piece_trie::symbol> symbols;
  std::vector<std::uint32_t> offsets;
  std::vector<place> places;
};

unigram::unigram(unigram_description description, token_list tokens)
    : tokens_(std::move(tokens)), unknown_(description.unknown), trie_(characters_of(description)) {
  double lowest = std::numeric_limits<double>::infinity();
  scores_.reserve(description.pieces.size());
  for (const auto& each : description.pieces) {
    scores_.push_back(each.second);
    lowest = std::min(lowest, each.second);
  }
  unknown_score_ = lowest - unknown_penalty;
  if (description.byte_fallback) bytes_ = tokens_.byte_tokens();
}

result<unigram> unigram::make(unigram_description description) {
  if (description.pieces.empty()) return failure{"has no pieces"};
  if (description.pieces.size() >= std::size_t{1} << 31) return failure{"has too many pieces"};
  if (description.unknown < 0 ||
      description.unknown >= static_cast<token_id>(description.pieces.size()))
    return failure{"has no piece for unk_id " + std::to_string(description.unknown)};
  std::set<char32_t> characters;
  for (const auto& [text, score] : description.pieces) {
    if (!std::isfinite(score)) return failure{"has a piece whose score is no number"};
    unicode::for_each(text, [&](char32_t c, std::size_t, unsigned) { characters.insert(c); });
  }
  if (characters.size() >= 0xfff0)
    return failure{"has " + std::to_string(characters.size()) +
                   " different characters; at most 65519 are supported"};
  token_list tokens(texts_of(description));
  if (description.byte_fallback && tokens.byte_tokens().empty())
    return failure{"has byte_fallback without pieces '<0x00>' to '<0xFF>'"};
  return unigram(std::move(description), std::move(tokens));
}

double unigram::segment(std::string_view piece, scratch& with) const {
  with.symbols.clear();
  with.offsets.clear();
  trie_.translate(piece, with.symbols, &with.offsets);
  const auto n = with.symbols.size();
  with.offsets.push_back(static_cast<std::uint32_t>(piece.size()));
  with.places.assign(n + 1, {0, -1, 0});
  const std::span<const piece_trie::symbol> symbols(with.symbols);
  for (std::size_t start = 0; start < n; ++start) {
    const double here = with.places[start].score;
    bool single = false;
    const auto offer = [&](std::size_t length, std::int32_t token, double score) {
      auto& there = with.places[start + length];
      if (there.token < 0 || here + score > there.score)
        there = {here + score, token, static_cast<std::uint32_t>(length)};
    };
    trie_.prefixes(symbols.subspan(start), [&](std::size_t length, std::int32_t token) {
      offer(length, token, scores_[static_cast<std::size_t>(token)]);
      single = single || length == 1;
    });
    if (!single) offer(1, static_cast<std::int32_t>(unknown_), unknown_score_);
  }
  return with.places[n].score;
}

void unigram::encode(const split_text& text, std::vector<token_id>& to) const {
  scratch with;
  for (const auto& each : text.pieces) {
    const auto piece = text.at(each);
    segment(piece, with);
    const auto begin = to.size();
    for (auto end = with.places.size() - 1; end > 0;) {
      const auto& place = with.places[end];
      auto start = end - place.length;
      if (place.token == unknown_) {
        while (start > 0 && with.places[start].token == unknown_)
          start -= with.places[start].length;
        const auto run = piece.substr(with.offsets[start], with.offsets[end] - with.offsets[start]);
        // A run may be a token that the text of a single character is not.
        if (const auto whole = tokens_.find(run))
          to.push_back(*whole);
        else if (bytes_.empty())
          to.push_back(unknown_);
        else
          for (auto i = run.size(); i > 0; --i)
            to.push_back(bytes_[static_cast<unsigned char>(run[i - 1])]);
      } else {
        to.push_back(place.token);
      }
      end = start;
    }
    std::reverse(to.begin() + static_cast<std::ptrdiff_t>(begin), to.end());
  }
}

double unigram::best_score(std::string_view piece) const {
  scratch with;
  return segment(piece, with);
}

} // namespace shoal::learn
