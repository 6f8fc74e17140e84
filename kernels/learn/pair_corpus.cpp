#include "kernels/learn/pair_corpus.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/sentences.hpp"
#include "kernels/learn/text.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace shoal::learn {

namespace {

/// Held-out samples have indices that no training sample reaches.
constexpr std::uint64_t held_out_from = std::uint64_t{1} << 63;

std::vector<std::string> documents_in(std::string text, document_unit unit) {
  if (unit == document_unit::file) return {std::move(text)};
  const std::string between = unit == document_unit::line ? "\n" : "\n\n";
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(between, at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + between.size();
  }
  return out;
}

/// The documents that are held out: by their digests, until they have the fraction. At least one,
/// and never all.
std::vector<bool> held_out_of(const std::vector<std::string>& texts, double fraction) {
  std::vector<std::pair<std::string, std::size_t>> order;
  double total = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    order.emplace_back(hash_of(std::as_bytes(std::span(texts[i]))).hex(), i);
    total += static_cast<double>(texts[i].size());
  }
  std::sort(order.begin(), order.end());
  std::vector<bool> out(texts.size());
  double held = 0;
  for (std::size_t i = 0; i + 1 < order.size() && held < fraction * total; ++i) {
    out[order[i].second] = true;
    held += static_cast<double>(texts[order[i].second].size());
  }
  return out;
}

} // namespace

result<pair_corpus> pair_corpus::load(std::span<const text_source> sources,
                                      const pair_vocabulary& vocabulary,
                                      const pair_options& options) {
  std::vector<documents> found;
  for (const auto& source : sources) {
    text_options reading;
    reading.context = 1;
    reading.field = options.field;
    reading.max_bytes = options.max_bytes;
    const auto files = text_corpus::load(source.patterns, reading);
    if (!files) return failure{files.error()};
    documents out;
    out.name = source.patterns.front();
    out.weight = source.weight;
    for (const auto& file : files->files())
      for (auto& text : documents_in({file.bytes.begin(), file.bytes.end()}, options.documents))
        out.texts.push_back(std::move(text));
    found.push_back(std::move(out));
  }
  return from_documents(std::move(found), vocabulary, options);
}

result<pair_corpus> pair_corpus::from_documents(std::vector<documents> sources,
                                                const pair_vocabulary& vocabulary,
                                                const pair_options& options) {
  if (sources.empty()) return failure{"data: no files were given"};
  if (!(options.holdout > 0 && options.holdout < 1))
    return failure{"data: holdout is a fraction between 0 and 1, both excluded"};
  if (options.masking.length < 8 || options.masking.length > 65535)
    return failure{"data: a sample has " + std::to_string(options.masking.length) +
                   " tokens; it must have from 8 to 65535"};
  pair_corpus out;
  out.options_ = options;
  out.vocabulary_ = vocabulary;
  out.counts_.assign(static_cast<std::size_t>(vocabulary.tokens), 0);
  hasher all;
  for (const auto& from : sources) {
    if (!(from.weight > 0) || !std::isfinite(from.weight))
      return failure{"data: the weight of '" + from.name + "' must be a positive number"};
    for (const auto& text : from.texts)
      all.add(std::string_view(text)).add(std::uint64_t{text.size()});
    out.add(from);
    const auto& added = out.sources_.back();
    for (const auto& [chunks, what] :
         {std::pair(&added.train, "to train on"), std::pair(&added.held_out, "to hold out")})
      if (chunks->empty())
        return failure{"data: '" + from.name + "' has no document with two sentences " + what +
                       "; it has " + std::to_string(from.texts.size()) +
                       " documents: give more text, or make documents smaller"};
  }
  if (auto divided = out.divide(sources); !divided) return failure{divided.error()};
  out.digest_ = all.finish();
  return out;
}

albert_format pair_corpus::sample_format() const {
  return {vocabulary_.tokens, options_.masking.length};
}

void pair_corpus::add(const documents& from) {
  auto& to = sources_.emplace_back();
  const auto held = held_out_of(from.texts, options_.holdout);
  for (std::size_t i = 0; i < from.texts.size(); ++i)
    add_chunks(to, from.texts[i], held[i], held[i] ? to.held_out : to.train);
}

void pair_corpus::add_chunks(source& to, const std::string& text, bool held,
                             std::vector<chunk>& chunks) {
  const auto full = static_cast<std::size_t>(options_.masking.length);
  chunk now{static_cast<std::uint32_t>(to.sentences.size()), 0};
  std::size_t tokens = 0, bytes = 0;
  const auto finish = [&] {
    if (now.count >= 2) chunks.push_back(now);
    now = {static_cast<std::uint32_t>(to.sentences.size()), 0};
    tokens = bytes = 0;
  };
  for (const auto& whole : split_sentences(text, options_.sentence_ends)) {
    const auto kept = cut_utf8(whole, text_bytes() / 2 - 1);
    if (bytes + kept.size() + 1 > text_bytes()) finish();
    const auto ids = vocabulary_.codec->encode(kept);
    if (!held) {
      for (const auto id : ids) ++counts_[static_cast<std::size_t>(id)];
      train_tokens_ += ids.size();
    }
    to.sentences.push_back({to.text.size(), static_cast<std::uint32_t>(kept.size())});
    to.text += kept;
    ++now.count;
    tokens += ids.size();
    bytes += kept.size() + 1;
    if (tokens >= full && now.count >= 2) finish();
  }
  finish();
}

/// Shares of the sources, by largest remainders, and the held-out samples.
result<void> pair_corpus::divide(std::span<const documents> from) {
  double total = 0;
  for (const auto& source : from) total += source.weight;
  std::vector<std::pair<double, std::size_t>> rests;
  std::uint64_t given = 0;
  for (std::size_t s = 0; s < from.size(); ++s) {
    const double exact = from[s].weight / total * static_cast<double>(run_of_sources);
    sources_[s].share = static_cast<std::uint64_t>(exact);
    given += sources_[s].share;
    rests.emplace_back(static_cast<double>(sources_[s].share) - exact, s);
  }
  std::sort(rests.begin(), rests.end());
  for (std::size_t i = 0; given < run_of_sources; ++i, ++given)
    ++sources_[rests[i % rests.size()].second].share;

  // The held-out samples come from the sources by their shares, evenly spread over their chunks.
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (sources_[s].share == 0)
      return failure{"data: the weight of '" + from[s].name +
                     "' is less than a thousandth of all weights"};
    const auto there = sources_[s].held_out.size();
    const auto wanted = std::clamp<std::uint64_t>(
        options_.held_out_most * sources_[s].share / run_of_sources, 1, there);
    for (std::uint64_t i = 0; i < wanted; ++i)
      held_out_.push_back({s, static_cast<std::size_t>(i * there / wanted)});
  }
  return {};
}

pair_corpus::place pair_corpus::place_of(std::uint64_t index) const {
  const auto seed = options_.masking.seed;
  const auto run = index / run_of_sources;
  // A permutation gives each source its share of the run, and each of its samples a rank.
  auto rank =
      permute(index % run_of_sources, run_of_sources, stream(seed, "pair_sources", run).next());
  std::size_t s = 0;
  while (rank >= sources_[s].share) rank -= sources_[s++].share;
  const auto number = run * sources_[s].share + rank, count = chunks(s);
  const auto key = stream(seed, "pair_order", number / count, s).next();
  return {s, options_.shuffle_buffer == 0
                 ? permute(number % count, count, key)
                 : buffered(number % count, count, options_.shuffle_buffer, key)};
}

segment_pair pair_corpus::pair(std::uint64_t index) const {
  const auto at = place_of(index);
  const auto& source = sources_[at.source];
  return cut(source, source.train[static_cast<std::size_t>(at.chunk)], index);
}

segment_pair pair_corpus::cut(const source& of, const chunk& from, std::uint64_t index) const {
  auto random = stream(options_.masking.seed, "pair_cut", index);
  const auto first = 1 + static_cast<std::uint32_t>(random.below(from.count - 1));
  const auto joined = [&](std::uint32_t begin, std::uint32_t end) {
    std::string out;
    for (auto i = begin; i < end; ++i) {
      const auto& at = of.sentences[from.first + i];
      if (!out.empty()) out += ' ';
      out.append(of.text, static_cast<std::size_t>(at.offset), at.bytes);
    }
    return out;
  };
  segment_pair out{joined(0, first), joined(first, from.count), 0};
  if (random.uniform() < 0.5) {
    std::swap(out.first, out.second);
    out.order = 1;
  }
  return out;
}

std::vector<std::byte> pair_corpus::held_out_samples() const {
  const auto format = sample_format();
  std::vector<std::byte> out(held_out_.size() * format.bytes());
  for (std::size_t i = 0; i < held_out_.size(); ++i) {
    const auto& source = sources_[held_out_[i].source];
    const auto index = held_out_from + i;
    format.write(masked_sample(cut(source, source.held_out[held_out_[i].chunk], index), index,
                               vocabulary_, options_.masking),
                 std::span(out).subspan(i * format.bytes(), format.bytes()));
  }
  return out;
}

double pair_corpus::unigram_loss() const {
  const auto format = sample_format();
  const auto samples = held_out_samples();
  const double total = static_cast<double>(train_tokens_) + static_cast<double>(counts_.size());
  double sum = 0, labels = 0;
  for (std::size_t i = 0; i < held_out_.size(); ++i)
    for (const auto label :
         format.read(std::span(samples).subspan(i * format.bytes(), format.bytes())).labels) {
      if (label == albert_sample::no_label) continue;
      sum -= std::log((static_cast<double>(counts_[static_cast<std::size_t>(label)]) + 1) / total);
      labels += 1;
    }
  return labels == 0 ? 0 : sum / labels;
}

} // namespace shoal::learn
