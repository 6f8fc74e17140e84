#include "kernels/learn/tokenizer/train_unigram.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/portable_math.hpp"
#include "kernels/learn/tokenizer/piece_trie.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace shoal::learn {

namespace {

constexpr double least_count = 0.5, shrink = 0.75, unknown_penalty = 10;
constexpr int em_steps = 2;
/// Longer words are cut. Then no sum of probabilities leaves the range of double after scaling.
constexpr std::size_t longest_word = 256;

struct scored_piece {
  std::u32string text;
  double score = 0; ///< before the first round a count, then a logarithm
};

/// The segmentations of words into pieces.
class segmenter {
public:
  using symbols = std::vector<piece_trie::symbol>;

  explicit segmenter(const std::vector<scored_piece>& pieces) : trie_(texts_of(pieces)) {
    set_scores(pieces);
  }
  /// Requires: the same pieces in the same order; those of score -infinity are gone.
  void set_scores(const std::vector<scored_piece>& pieces) {
    scores_.clear();
    probabilities_.clear();
    double lowest = 0;
    for (const auto& each : pieces) {
      scores_.push_back(each.score);
      probabilities_.push_back(each.score > gone ? portable::exp(each.score) : 0);
      if (each.score > gone) lowest = std::min(lowest, each.score);
    }
    unknown_score_ = lowest - unknown_penalty;
  }

  symbols translated(std::u32string_view text) const {
    symbols out;
    out.reserve(text.size());
    for (const auto c : text) out.push_back(trie_.symbol_of(c));
    return out;
  }

  /// Adds `weight` times the expected count of each piece in the word. Returns log of the sum of
  /// the probabilities of all segmentations.
  double expect(const symbols& word, double weight, std::vector<double>& counts) {
    edges_of(word);
    double shift = 0; // each character adds it to the logarithm
    double sum = forward_backward(word.size(), shift);
    if (!(sum > 1e-280 && sum < 1e280)) {
      best(word, false);
      shift = -places_.back().score / static_cast<double>(word.size());
      sum = forward_backward(word.size(), shift);
    }
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const auto& edge = edges_[i];
      if (edge.piece >= 0)
        counts[static_cast<std::size_t>(edge.piece)] +=
            weight * forward_[edge.begin] * edge.probability * backward_[edge.end] / sum;
    }
    return portable::log(sum) - shift * static_cast<double>(word.size());
  }

  /// Calls `each(piece)` for the pieces of the best segmentation, from its end; -1: unknown.
  /// Returns its score. `parts`: not the word as a whole.
  template <class Each>
  double best(const symbols& word, bool parts, Each each) {
    const double score = best(word, parts);
    if (score == gone) return gone;
    for (auto end = word.size(); end > 0; end -= places_[end].length) each(places_[end].piece);
    return score;
  }

  static constexpr double gone = -std::numeric_limits<double>::infinity();

private:
  struct edge {
    std::uint32_t begin, end;
    std::int32_t piece;
    double probability;
  };
  struct place {
    double score;
    std::int32_t piece;
    std::uint32_t length;
  };

  static std::vector<std::u32string> texts_of(const std::vector<scored_piece>& pieces) {
    std::vector<std::u32string> out;
    out.reserve(pieces.size());
    for (const auto& each : pieces) out.push_back(each.text);
    return out;
  }

  /// Calls `each(begin, length, piece, score)` for all pieces in the word, and for its unknown
  /// characters.
  template <class Each>
  void walk(const symbols& word, Each each) const {
    const std::span<const piece_trie::symbol> all(word);
    for (std::size_t begin = 0; begin < word.size(); ++begin) {
      bool single = false;
      trie_.prefixes(all.subspan(begin), [&](std::size_t length, std::int32_t piece) {
        const double score = scores_[static_cast<std::size_t>(piece)];
        if (score == gone) return;
        each(begin, length, piece, score);
        single = single || length == 1;
      });
      if (!single) each(begin, std::size_t{1}, std::int32_t{-1}, unknown_score_);
    }
  }

  void edges_of(const symbols& word) {
    edges_.clear();
    const double unknown = portable::exp(unknown_score_);
    walk(word, [&](std::size_t begin, std::size_t length, std::int32_t piece, double) {
      edges_.push_back({static_cast<std::uint32_t>(begin),
                        static_cast<std::uint32_t>(begin + length), piece,
                        piece < 0 ? unknown : probabilities_[static_cast<std::size_t>(piece)]});
    });
  }

  /// The sums of the probabilities of all ways from the beginning to each place, and from there to
  /// the end. Each character multiplies a probability by exp(shift).
  double forward_backward(std::size_t n, double shift) {
    forward_.assign(n + 1, 0);
    backward_.assign(n + 1, 0);
    forward_[0] = backward_[n] = 1;
    if (shift != 0)
      for (auto& each : edges_) {
        const double score =
            each.piece < 0 ? unknown_score_ : scores_[static_cast<std::size_t>(each.piece)];
        each.probability = portable::exp(score + shift * (each.end - each.begin));
      }
    // Edges come with their beginnings ascending.
    for (const auto& each : edges_) forward_[each.end] += forward_[each.begin] * each.probability;
    for (auto each = edges_.rbegin(); each != edges_.rend(); ++each)
      backward_[each->begin] += backward_[each->end] * each->probability;
    return forward_[n];
  }

  double best(const symbols& word, bool parts) {
    places_.assign(word.size() + 1, {gone, -1, 0});
    places_[0].score = 0;
    walk(word, [&](std::size_t begin, std::size_t length, std::int32_t piece, double score) {
      if (parts && length == word.size()) return;
      const double sum = places_[begin].score + score;
      if (auto& there = places_[begin + length]; sum > there.score)
        there = {sum, piece, static_cast<std::uint32_t>(length)};
    });
    return places_.back().score;
  }

  piece_trie trie_;
  std::vector<double> scores_, probabilities_;
  double unknown_score_ = 0;
  std::vector<edge> edges_;
  std::vector<double> forward_, backward_;
  std::vector<place> places_;
};

class trainer {
public:
  trainer(std::vector<counted_word> words, const unigram_training& options)
      : options_(options), words_(std::move(words)) {}

  result<unigram_description> run(const std::function<void(const unigram_progress&)>& progress) {
    for (const auto& each : words_)
      for (const auto c : each.text) characters_[c] += each.count;
    if (characters_.empty()) return failure{"the texts have no words"};
    leave_rare_characters();
    const auto least = options_.special.size() + characters_.size();
    if (options_.vocabulary < least)
      return failure{"a vocabulary of " + std::to_string(options_.vocabulary) +
                     " tokens is too small: there are " + std::to_string(characters_.size()) +
                     " characters and " + std::to_string(options_.special.size()) +
                     " special tokens; ask for at least " + std::to_string(least) +
                     ", or cover fewer characters"};
    arrange_words();
    make_seeds();
    const auto wanted = options_.vocabulary * 11 / 10;
    for (;;) {
      segmenter with(pieces_);
      translate_words(with);
      double likelihood = 0;
      for (int step = 0; step < em_steps; ++step) likelihood = em_step(with);
      // Pieces that are gone lie still between the others.
      std::erase_if(pieces_, [](const auto& each) { return each.score == segmenter::gone; });
      if (progress) progress({pieces_.size(), wanted, likelihood});
      if (pieces_.size() <= wanted) break;
      prune(wanted);
    }
    return finished();
  }

private:
  void leave_rare_characters() {
    std::uint64_t all = 0, kept = 0;
    std::vector<std::pair<std::uint64_t, char32_t>> order;
    for (const auto& [c, count] : characters_) {
      order.emplace_back(count, c);
      all += count;
    }
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (const auto& [count, c] : order) {
      if (static_cast<double>(kept) >= options_.character_coverage * static_cast<double>(all))
        characters_.erase(c);
      else
        by_count_.push_back(c);
      kept += count;
    }
  }

  /// Cuts words at characters that are no tokens, joins equal words, and sorts them.
  void arrange_words() {
    std::map<std::u32string, std::uint64_t> counts;
    for (const auto& each : words_) {
      std::u32string part;
      const auto end = [&] {
        if (!part.empty()) counts[part] += each.count;
        part.clear();
      };
      for (const auto c : each.text) {
        if (!characters_.contains(c)) {
          end();
          continue;
        }
        part.push_back(c);
        if (part.size() == longest_word) end();
      }
      end();
    }
    words_.clear();
    for (auto& [text, count] : counts) words_.push_back({text, count});
    total_ = 0;
    for (const auto& each : words_) total_ += static_cast<double>(each.count);
  }

  bool allowed(std::u32string_view text) const {
    constexpr char32_t mark = 0x2581;
    for (const auto c : text)
      if (!characters_.contains(c)) return false; // a follower, or a rare character
    if (!options_.one_script) return true;
    int before = -1;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == mark) {
        if (i > 0) return false;
        continue;
      }
      const int now = scripts_.at(text[i]);
      if (now < 0) continue; // marks of the script before them
      if (before >= 0 && now != before) return false;
      before = now;
    }
    return true;
  }

  void make_seeds() {
    for (const auto& [c, count] : characters_) {
      // A digit is no neighbour of a sign, though both are common to all scripts.
      const int script = unicode::script_of(c);
      static const int inherited = unicode::script_of(0x300);
      scripts_[c] = script == inherited ? -1 : script;
      pieces_.push_back({std::u32string(1, c), static_cast<double>(count)});
    }
    std::vector<std::pair<std::uint64_t, std::u32string_view>> seeds;
    const auto& texts = options_.followed_words.empty() ? words_ : options_.followed_words;
    for (const auto& each : repeated_substrings(texts, options_.longest_piece)) {
      const auto text = std::u32string_view(texts[each.word].text).substr(each.begin, each.length);
      if (allowed(text)) seeds.emplace_back(each.count * each.length, text);
    }
    // Substrings come in the order of their characters, which decides between equals.
    std::stable_sort(seeds.begin(), seeds.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    if (seeds.size() > options_.most_seeds) seeds.resize(options_.most_seeds);
    for (const auto& [score, text] : seeds)
      pieces_.push_back({std::u32string(text), static_cast<double>(score)});
    double sum = 0;
    for (const auto& each : pieces_) sum += each.score;
    for (auto& each : pieces_) each.score = portable::log(each.score) - portable::log(sum);
  }

  void translate_words(const segmenter& with) {
    symbols_.clear();
    symbols_.reserve(words_.size());
    for (const auto& each : words_) symbols_.push_back(with.translated(each.text));
  }

  /// Returns the mean log-likelihood of a word before the step.
  double em_step(segmenter& with) {
    std::vector<double> counts(pieces_.size());
    double likelihood = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const auto count = static_cast<double>(words_[i].count);
      likelihood += count * with.expect(symbols_[i], count, counts);
    }
    double sum = 0;
    for (const auto count : counts)
      if (count >= least_count) sum += count;
    const double of_sum = digamma(sum);
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      pieces_[i].score = counts[i] >= least_count ? digamma(counts[i]) - of_sum : segmenter::gone;
    with.set_scores(pieces_);
    return likelihood / total_;
  }

  void prune(std::size_t wanted) {
    segmenter with(pieces_);
    translate_words(with);
    std::vector<double> counts(pieces_.size());
    for (std::size_t i = 0; i < words_.size(); ++i)
      with.best(symbols_[i], false, [&](std::int32_t piece) {
        if (piece >= 0)
          counts[static_cast<std::size_t>(piece)] += static_cast<double>(words_[i].count);
      });
    double sum = 0;
    for (const auto count : counts) sum += count;
    const double log_sum = portable::log(sum);

    std::vector<bool> stays(pieces_.size());
    std::vector<std::pair<double, std::size_t>> losses;
    std::vector<std::int32_t> parts;
    std::size_t staying = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (counts[i] == 0) continue;
      parts.clear();
      const double split = with.best(with.translated(pieces_[i].text), true,
                                     [&](std::int32_t piece) { parts.push_back(piece); });
      if (split == segmenter::gone) {
        stays[i] = true;
        ++staying;
        continue;
      }
      if (split > pieces_[i].score)
        continue; // The best segmentation of the piece has several parts.
      // The libraries take the number of all pieces here, where that of `parts` would be exact. So
      // frequent pieces with many parts stay longer.
      const double log_sum_after =
          portable::log(sum + counts[i] * (static_cast<double>(pieces_.size()) - 1));
      double after = 0;
      for (const auto part : parts)
        after +=
            portable::log((part < 0 ? 0 : counts[static_cast<std::size_t>(part)]) + counts[i]) -
            log_sum_after;
      const double before = portable::log(counts[i]) - log_sum;
      losses.emplace_back(counts[i] / total_ * (before - after), i);
    }
    std::sort(losses.begin(), losses.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    const auto keep =
        std::max(wanted, static_cast<std::size_t>(shrink * static_cast<double>(pieces_.size())));
    for (std::size_t i = 0; i < losses.size() && staying < keep; ++i, ++staying)
      stays[losses[i].second] = true;
    std::size_t to = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      if (stays[i]) {
        if (to != i) pieces_[to] = std::move(pieces_[i]);
        ++to;
      }
    pieces_.resize(to);
  }

  result<unigram_description> finished() {
    const auto by_score = [](const scored_piece& a, const scored_piece& b) {
      return a.score != b.score ? a.score > b.score : a.text < b.text;
    };
    std::sort(pieces_.begin(), pieces_.end(), by_score);
    std::map<char32_t, double> singles;
    double lowest = 0;
    for (const auto& each : pieces_) {
      lowest = std::min(lowest, each.score);
      if (each.text.size() == 1) singles[each.text.front()] = each.score;
    }
    std::vector<scored_piece> chosen;
    double penalty = 0;
    for (const auto c : by_count_) {
      const auto found = singles.find(c);
      chosen.push_back(
          {std::u32string(1, c), found != singles.end() ? found->second : lowest + penalty});
      if (found == singles.end()) penalty += 1e-4;
    }
    // A special token may be a text that occurs, too.
    std::set<std::u32string> special;
    for (const auto& each : options_.special) special.insert(unicode::decoded(each));
    const auto room = options_.vocabulary - options_.special.size();
    for (auto& each : pieces_) {
      if (chosen.size() == room) break;
      if (each.text.size() > 1 && !special.contains(each.text)) chosen.push_back(std::move(each));
    }
    if (chosen.size() < room)
      return failure{"the texts give only " +
                     std::to_string(chosen.size() + options_.special.size()) +
                     " tokens; ask for at most that many, or give more text"};
    std::sort(chosen.begin(), chosen.end(), by_score);
    unigram_description out;
    for (const auto& each : options_.special) out.pieces.emplace_back(each, 0);
    for (const auto& each : chosen)
      out.pieces.emplace_back(unicode::encoded(each.text), each.score);
    out.unknown = static_cast<token_id>(options_.unknown);
    return out;
  }

  const unigram_training& options_;
  std::vector<counted_word> words_;
  double total_ = 0; ///< the words in all
  std::map<char32_t, std::uint64_t> characters_;
  std::vector<char32_t> by_count_; ///< the same, the most frequent first
  std::map<char32_t, int> scripts_;
  std::vector<scored_piece> pieces_;
  std::vector<segmenter::symbols> symbols_; ///< the symbols of words_
};

} // namespace

double digamma(double x) {
  SHOAL_CHECK(x > 0, "digamma is taken of counts");
  double out = 0;
  for (; x < 10; ++x) out -= 1 / x;
  const double y = 1 / (x * x);
  return out + portable::log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
}

result<unigram_description>
train_unigram(std::vector<counted_word> words, const unigram_training& options,
              const std::function<void(const unigram_progress&)>& progress) {
  SHOAL_CHECK(options.unknown < options.special.size(), "one special token is the unknown one");
  return trainer(std::move(words), options).run(progress);
}

} // namespace shoal::learn
