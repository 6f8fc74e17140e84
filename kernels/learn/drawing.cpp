#include "kernels/learn/drawing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace shoal::learn {

namespace {

/// Nats for each code of the pictures at `places`, if each position has its own frequencies.
double position_unigram(const picture_samples& data, std::span<const std::size_t> places) {
  constexpr double prior = 10; // pictures
  const auto codes = data.set().book.codes(), length = data.set().book.side * data.set().book.side;
  std::vector<double> all(codes, 1.0), each(codes * length);
  double total = static_cast<double>(codes), pictures = 0;
  for (const auto i : data.set().places(false)) {
    ++pictures;
    for (std::size_t p = 0; p < length; ++p) {
      const auto code = static_cast<std::size_t>(data.set().codes[i][p]);
      all[code] += 1;
      each[p * codes + code] += 1;
      total += 1;
    }
  }
  double out = 0;
  for (const auto i : places)
    for (std::size_t p = 0; p < length; ++p) {
      const auto code = static_cast<std::size_t>(data.set().codes[i][p]);
      out -= std::log((each[p * codes + code] + prior * all[code] / total) / (pictures + prior));
    }
  return out / static_cast<double>(places.size() * length);
}

double mean_of(const std::vector<dalle_loss>& losses, double dalle_loss::*part) {
  double sum = 0;
  for (const auto& loss : losses) sum += loss.*part;
  return sum / static_cast<double>(losses.size());
}

double similarity(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Up to `most` held-out pictures; those of training if none are held out.
std::vector<std::size_t> judged(const picture_samples& data, std::size_t most) {
  auto out = data.set().places(true);
  if (out.empty()) out = data.set().places(false);
  out.resize(std::min(most, out.size()));
  return out;
}

/// The samples with the caption of picture captions[i] and the codes of picture pictures[i].
std::vector<std::byte> crossed(const picture_samples& data, std::span<const std::size_t> captions,
                               std::span<const std::size_t> pictures) {
  const auto& format = data.format();
  std::vector<std::byte> out(captions.size() * format.bytes());
  for (std::size_t i = 0; i < captions.size(); ++i)
    format.write({data.set().tokens_of(data.set().captions[captions[i]],
                                       static_cast<std::size_t>(format.config.text_length)),
                  data.set().codes[pictures[i]]},
                 std::span(out).subspan(i * format.bytes(), format.bytes()));
  return out;
}

} // namespace

std::vector<token_id> caption_tokens(const picture_samples& data, const std::string& caption) {
  auto out = data.set().words->encode(caption);
  out.resize(std::min(out.size(), static_cast<std::size_t>(data.format().config.text_length)));
  if (out.empty()) out.push_back(0);
  return out;
}

std::vector<std::vector<token_id>>
drawn_codes(const dalle& model, std::span<const float> parameters, const picture_samples& data,
            const std::string& caption, std::size_t count, const sampling_options& options,
            std::uint64_t seed) {
  const auto length = static_cast<std::size_t>(data.format().config.text_length);
  return model.draw(parameters, data.set().tokens_of(caption, length), count, options, seed);
}

contrastive_pair train_ranker(const picture_samples& data, const contrastive_training& options,
                              const std::function<void(std::size_t, double)>& progress) {
  std::vector<captioned_codes> samples;
  for (const auto i : data.set().places(false))
    samples.push_back({caption_tokens(data, data.set().captions[i]), data.set().codes[i]});
  const auto& config = data.format().config;
  contrastive_pair out({static_cast<std::size_t>(config.text_vocabulary),
                        static_cast<std::size_t>(config.codes),
                        static_cast<std::size_t>(config.image_length())},
                       options.seed);
  out.train(samples, options, progress);
  return out;
}

std::vector<std::size_t> ranked(const contrastive_pair& by, std::span<const token_id> caption,
                                const std::vector<std::vector<token_id>>& pictures) {
  const auto wanted = by.caption_vector(caption);
  std::vector<double> scores;
  for (const auto& codes : pictures) scores.push_back(similarity(wanted, by.picture_vector(codes)));
  std::vector<std::size_t> out(pictures.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::stable_sort(out.begin(), out.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  return out;
}

drawing_score score_drawing(const dalle& model, std::span<const float> parameters,
                            const picture_samples& data, std::size_t most, std::size_t among,
                            const contrastive_pair* ranker) {
  const auto places = judged(data, most);
  drawing_score out;
  out.pictures = places.size();
  if (places.empty()) return out;
  const auto losses = model.losses(parameters, data.samples_at(places));
  out.image = mean_of(losses, &dalle_loss::image);
  out.text = mean_of(losses, &dalle_loss::text);
  out.unigram = position_unigram(data, places);
  auto others = places;
  std::rotate(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2),
              others.end());
  out.shuffled =
      mean_of(model.losses(parameters, crossed(data, others, places)), &dalle_loss::image);

  out.among = std::min(among, places.size());
  const auto some = std::span(places).first(out.among);
  std::vector<std::vector<token_id>> pictures;
  for (const auto i : some) pictures.push_back(data.set().codes[i]);
  const double share = out.among == 0 ? 0 : 1 / static_cast<double>(out.among);
  for (std::size_t i = 0; i < some.size(); ++i) {
    const std::vector<std::size_t> same(some.size(), some[i]);
    const auto each = model.losses(parameters, crossed(data, same, some));
    const auto best = std::min_element(
        each.begin(), each.end(), [](const auto& a, const auto& b) { return a.image < b.image; });
    out.best_likelihood += best - each.begin() == static_cast<std::ptrdiff_t>(i) ? share : 0;
    if (ranker != nullptr &&
        ranked(*ranker, caption_tokens(data, data.set().captions[some[i]]), pictures).front() == i)
      out.best_contrastive += share;
  }
  return out;
}

drawn_score score_drawn(const dalle& model, std::span<const float> parameters,
                        const picture_samples& data, std::size_t among, std::size_t count,
                        const sampling_options& options, const contrastive_pair& ranker,
                        std::uint64_t seed) {
  const auto places = judged(data, among);
  const auto& book = data.set().book;
  std::vector<picture> right;
  for (const auto i : places) right.push_back(book.decode(data.set().codes[i]));
  drawn_score out;
  out.among = places.size();
  double error_first = 0, error_best = 0;
  const double share = places.empty() ? 0 : 1 / static_cast<double>(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& caption = data.set().captions[places[i]];
    const auto drawn = drawn_codes(model, parameters, data, caption, count, options, seed + i);
    const auto add = [&](std::size_t which, double& found, double& error) {
      const auto one = book.decode(drawn[which]);
      std::vector<double> errors;
      for (const auto& other : right) errors.push_back(squared_error(one, other));
      found += std::min_element(errors.begin(), errors.end()) - errors.begin() ==
                       static_cast<std::ptrdiff_t>(i)
                   ? share
                   : 0;
      error += errors[i] * share;
    };
    add(0, out.first, error_first);
    add(ranked(ranker, caption_tokens(data, caption), drawn).front(), out.best, error_best);
  }
  out.psnr_first = psnr(error_first);
  out.psnr_best = psnr(error_best);
  return out;
}

std::vector<std::string> unknown_words(const picture_samples& data, const std::string& caption) {
  const auto& set = data.set();
  std::set<std::string> known;
  for (const auto i : set.places(false))
    for (auto& word : set.words->pieces(set.captions[i])) known.insert(std::move(word));
  std::vector<std::string> out;
  constexpr std::string_view begins = "\u2581"; // marks the beginning of a word
  for (const auto& word : set.words->pieces(caption))
    if (!known.contains(word))
      out.push_back(word.starts_with(begins) ? word.substr(begins.size()) : word);
  return out;
}

} // namespace shoal::learn
