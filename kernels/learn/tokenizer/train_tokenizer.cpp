#include "kernels/learn/tokenizer/train_tokenizer.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/tokenizer/special_tokens.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"

#include <algorithm>
#include <utility>

namespace shoal::learn {

namespace {

std::vector<normalizer_step> steps_of(text_rules rules, bool lower_case) {
  using enum normalizer_kind;
  std::vector<normalizer_step> out;
  if (rules != text_rules::none)
    out = {{nmt, {}, {}}, {nfkc, {}, {}}, {replace_space_runs, {}, " "}};
  if (rules == text_rules::bengali) {
    // Other signs that writers use for the danda and the double danda.
    for (const auto& [sign, danda] : {std::pair{"\u09e4", "\u0964"},
                                      {"\u09e5", "\u0965"},
                                      {"|", "\u0964"},
                                      {"\u09f7", "\u0964"}})
      out.push_back({replace, sign, danda});
    out.push_back({replace_colon, {}, "\u0983"});
  }
  if (lower_case) out.push_back({lowercase, {}, {}});
  return out;
}

/// A line without the white space around it, which would be words of a mark alone.
std::string_view without_spaces_around(std::string_view line) {
  constexpr std::string_view white = " \t\r\f\v";
  const auto begin = line.find_first_not_of(white);
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(white) + 1 - begin);
}

} // namespace

tokenizer_description albert_pipeline(text_rules rules, bool lower_case) {
  tokenizer_description out;
  token_id id = 0;
  for (const auto& names :
       {special::padding, special::unknown, special::start, special::separator, special::mask}) {
    added_token token;
    token.id = id++;
    token.content = names[0];
    token.special = true;
    out.added.push_back(std::move(token));
  }
  out.added.back().strip_left = true;
  out.normalizer = steps_of(rules, lower_case);
  for (const auto kind :
       {splitter_kind::metaspace, splitter_kind::digits, splitter_kind::punctuation}) {
    splitter each;
    each.kind = kind;
    out.splitters.push_back(each);
  }
  using kind = template_part::kind;
  const std::string start(special::start[0]), separator(special::separator[0]);
  const template_part begin{kind::token, start, {2}, 0}, first{kind::first, {}, {}, 0},
      end{kind::token, separator, {3}, 0}, second{kind::second, {}, {}, 1},
      second_end{kind::token, separator, {3}, 1};
  out.single = {begin, first, end};
  out.pair = {begin, first, end, second, second_end};
  out.decoder = decoder_kind::metaspace;
  return out;
}

void word_counts::add(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = without_spaces_around(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const auto cut = split(normalize(line, pipeline_.normalizer), pipeline_.splitters, true);
    for (std::size_t i = 0; i < cut.pieces.size(); ++i) {
      const auto next =
          i + 1 < cut.pieces.size() ? unicode::first_of(cut.at(cut.pieces[i + 1])).value : U'\n';
      auto& counts = counts_[std::string(cut.at(cut.pieces[i]))];
      const auto same = std::find_if(counts.begin(), counts.end(),
                                     [&](const auto& each) { return each.first == next; });
      if (same == counts.end())
        counts.emplace_back(next, 1);
      else
        ++same->second;
    }
    total_ += cut.pieces.size();
  }
}

std::vector<const std::pair<const std::string, word_counts::by_follower>*>
word_counts::ordered() const {
  std::vector<const std::pair<const std::string, by_follower>*> out;
  out.reserve(counts_.size());
  for (const auto& each : counts_) out.push_back(&each);
  std::sort(out.begin(), out.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  return out;
}

std::vector<counted_word> word_counts::words() const {
  std::vector<counted_word> out;
  out.reserve(counts_.size());
  for (const auto* each : ordered()) {
    std::uint64_t count = 0;
    for (const auto& [next, times] : each->second) count += times;
    out.push_back({unicode::decoded(each->first), count});
  }
  return out;
}

std::vector<counted_word> word_counts::followed_words() const {
  std::vector<counted_word> out;
  for (const auto* each : ordered()) {
    auto counts = each->second;
    std::sort(counts.begin(), counts.end());
    const auto word = unicode::decoded(each->first);
    for (const auto& [next, times] : counts) out.push_back({word + follower(next), times});
  }
  return out;
}

result<tokenizer_description>
train_tokenizer(const word_counts& words, tokenizer_description pipeline, unigram_training options,
                const std::function<void(const unigram_progress&)>& progress) {
  options.special.clear();
  for (const auto& token : pipeline.added) {
    if (token.id != static_cast<token_id>(options.special.size())) break;
    if (token.content == "<unk>") options.unknown = options.special.size();
    options.special.push_back(token.content);
  }
  options.followed_words = words.followed_words();
  auto trained = train_unigram(words.words(), options, progress);
  if (!trained) return failure{trained.error()};
  pipeline.model = *std::move(trained);
  return pipeline;
}

} // namespace shoal::learn
