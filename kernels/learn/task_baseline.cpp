#include "kernels/learn/task_baseline.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>

namespace shoal::learn {

namespace {

/// The starts of the UTF-8 characters of a text, and its end.
std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80U) out.push_back(i);
  out.push_back(text.size());
  return out;
}

template <class Use>
void for_each_gram(std::string_view text, Use use) {
  const auto starts = character_starts(text);
  for (std::size_t n = 2; n <= 4; ++n)
    for (std::size_t i = 0; i + n < starts.size(); ++i)
      use(std::string(text.substr(starts[i], starts[i + n] - starts[i])));
}

} // namespace

std::vector<tag_sequence> look_up_tags(std::span<const labelled_text> train,
                                       std::span<const labelled_text> test) {
  std::unordered_map<std::string, std::map<std::string, std::size_t>> seen;
  for (const auto& text : train)
    for (std::size_t w = 0; w < text.words.size(); ++w) ++seen[text.words[w]][text.tags[w]];
  std::vector<tag_sequence> out;
  for (const auto& text : test) {
    auto& tags = out.emplace_back();
    for (const auto& word : text.words) {
      const auto known = seen.find(word);
      if (known == seen.end()) {
        tags.emplace_back("O");
        continue;
      }
      const auto best =
          std::max_element(known->second.begin(), known->second.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      tags.push_back(best->first);
    }
  }
  return out;
}

std::vector<std::string> naive_bayes(std::span<const labelled_text> train,
                                     std::span<const labelled_text> test) {
  constexpr double smoothing = 0.1;
  struct of_class {
    double texts = 0, grams = 0;
    std::unordered_map<std::string, double> counts;
  };
  std::map<std::string, of_class> classes;
  std::unordered_map<std::string, bool> vocabulary;
  for (const auto& text : train) {
    auto& c = classes[text.tags.front()];
    ++c.texts;
    for_each_gram(text.words.front(), [&](std::string gram) {
      vocabulary.emplace(gram, true);
      ++c.counts[std::move(gram)];
      ++c.grams;
    });
  }
  std::vector<std::string> out;
  for (const auto& text : test) {
    std::string best;
    double most = 0;
    for (const auto& [label, c] : classes) {
      double score = std::log(c.texts / static_cast<double>(train.size()));
      const double total = c.grams + smoothing * static_cast<double>(vocabulary.size());
      for_each_gram(text.words.front(), [&](const std::string& gram) {
        if (vocabulary.count(gram) == 0) return;
        const auto found = c.counts.find(gram);
        score += std::log(((found == c.counts.end() ? 0 : found->second) + smoothing) / total);
      });
      if (best.empty() || score > most) {
        best = label;
        most = score;
      }
    }
    out.push_back(best);
  }
  return out;
}

} // namespace shoal::learn
