#include "kernels/learn/drawing.hpp"

#include "kernels/base/in_parallel.hpp"

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
  const auto codes = data.set().coder->grid().codes, length = data.set().coder->grid().places();
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

double share_of(const std::vector<std::uint8_t>& yes) {
  return yes.empty() ? 0
                     : static_cast<double>(std::count(yes.begin(), yes.end(), 1)) /
                           static_cast<double>(yes.size());
}

std::vector<std::vector<float>> vectors_of(const contrastive_pair& by,
                                           const std::vector<std::vector<token_id>>& pictures) {
  std::vector<std::vector<float>> out;
  for (const auto& codes : pictures) out.push_back(by.picture_vector(codes));
  return out;
}

/// The indices of `pictures`, those that are most similar to the caption first.
std::vector<std::size_t> by_similarity(std::span<const float> caption,
                                       const std::vector<std::vector<float>>& pictures) {
  std::vector<double> scores;
  for (const auto& one : pictures) scores.push_back(similarity(caption, one));
  std::vector<std::size_t> out(pictures.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::stable_sort(out.begin(), out.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  return out;
}

/// As model.losses(), on several threads.
std::vector<dalle_loss> losses_of(const dalle& model, std::span<const float> parameters,
                                  std::span<const std::byte> samples, std::size_t threads) {
  const auto chunk = dalle::chunk * model.sample_bytes();
  std::vector<dalle_loss> out(samples.size() / model.sample_bytes());
  in_parallel((samples.size() + chunk - 1) / chunk, threads, [&](std::size_t i) {
    const auto some = samples.subspan(i * chunk, std::min(chunk, samples.size() - i * chunk));
    const auto losses = model.losses(parameters, some);
    std::copy(losses.begin(), losses.end(),
              out.begin() + static_cast<std::ptrdiff_t>(i * dalle::chunk));
  });
  return out;
}

std::vector<std::vector<token_id>> codes_at(const picture_samples& data,
                                            std::span<const std::size_t> places) {
  std::vector<std::vector<token_id>> out;
  for (const auto i : places) out.push_back(data.set().codes[i]);
  return out;
}

/// The tokens of a caption, as the model reads them.
std::vector<token_id> padded_tokens(const picture_samples& data, const std::string& caption) {
  return data.set().tokens_of(caption, static_cast<std::size_t>(data.format().config.text_length));
}

/// Up to `most` held-out pictures; those of training if none are held out.
std::vector<std::size_t> judged_places(const picture_samples& data, std::size_t most) {
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
    format.write(
        {padded_tokens(data, data.set().captions[captions[i]]), data.set().codes[pictures[i]]},
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
  return by_similarity(by.caption_vector(caption), vectors_of(by, pictures));
}

drawing_score score_drawing(const dalle& model, std::span<const float> parameters,
                            const picture_samples& data, const scoring& how,
                            const contrastive_pair& ranker) {
  const auto places = judged_places(data, how.most);
  drawing_score out;
  out.pictures = places.size();
  if (places.empty()) return out;
  const auto losses = losses_of(model, parameters, data.samples_at(places), how.threads);
  out.image = mean_of(losses, &dalle_loss::image);
  out.text = mean_of(losses, &dalle_loss::text);
  out.unigram = position_unigram(data, places);
  auto others = places;
  std::rotate(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2),
              others.end());
  out.shuffled = mean_of(losses_of(model, parameters, crossed(data, others, places), how.threads),
                         &dalle_loss::image);

  out.among = std::min(how.among, places.size());
  out.asked = std::min(how.asked, out.among);
  const auto some = std::span(places).first(out.among);
  const auto vectors = vectors_of(ranker, codes_at(data, some));
  std::vector<std::uint8_t> likeliest(out.asked), most_similar(out.asked);
  in_parallel(out.asked, how.threads, [&](std::size_t i) {
    const std::vector<std::size_t> same(some.size(), some[i]);
    const auto each = model.losses(parameters, crossed(data, same, some));
    const auto best = std::min_element(
        each.begin(), each.end(), [](const auto& a, const auto& b) { return a.image < b.image; });
    likeliest[i] = best - each.begin() == static_cast<std::ptrdiff_t>(i) ? 1 : 0;
    const auto wanted = ranker.caption_vector(caption_tokens(data, data.set().captions[some[i]]));
    most_similar[i] = by_similarity(wanted, vectors).front() == i ? 1 : 0;
  });
  out.best_likelihood = share_of(likeliest);
  out.best_contrastive = share_of(most_similar);
  return out;
}

drawn_score score_drawn(const dalle& model, std::span<const float> parameters,
                        const picture_samples& data, const scoring& how, std::size_t count,
                        const sampling_options& options, const contrastive_pair& ranker,
                        std::uint64_t seed) {
  const auto places = judged_places(data, how.among);
  const auto& coder = *data.set().coder;
  std::vector<picture> right;
  for (const auto i : places) right.push_back(coder.decode(data.set().codes[i]));
  drawn_score out;
  out.among = places.size();
  out.asked = std::min(how.asked, out.among);
  struct judgement {
    std::vector<std::uint8_t> found;
    std::vector<double> errors;
  };
  judgement first{std::vector<std::uint8_t>(out.asked), std::vector<double>(out.asked)},
      best = first;
  // Captions that are drawn together fill the model's batches.
  const auto together = std::max<std::size_t>(1, model.drawn_at_once() / count);
  in_parallel((out.asked + together - 1) / together, how.threads, [&](std::size_t piece) {
    const auto begin = piece * together, end = std::min(begin + together, out.asked);
    std::vector<dalle_request> wanted;
    for (auto i = begin; i < end; ++i)
      for (std::size_t n = 0; n < count; ++n)
        wanted.push_back({padded_tokens(data, data.set().captions[places[i]]), seed + i, n});
    const auto drawn = model.draw(parameters, wanted, options);
    for (auto i = begin; i < end; ++i) {
      const std::vector<std::vector<token_id>> own(
          drawn.begin() + static_cast<std::ptrdiff_t>((i - begin) * count),
          drawn.begin() + static_cast<std::ptrdiff_t>((i - begin + 1) * count));
      const auto judge = [&](std::size_t which, judgement& into) {
        const auto one = coder.decode(own[which]);
        std::vector<double> errors;
        for (const auto& other : right) errors.push_back(squared_error(one, other));
        const auto nearest = std::min_element(errors.begin(), errors.end()) - errors.begin();
        into.found[i] = nearest == static_cast<std::ptrdiff_t>(i) ? 1 : 0;
        into.errors[i] = errors[i];
      };
      judge(0, first);
      judge(ranked(ranker, caption_tokens(data, data.set().captions[places[i]]), own).front(),
            best);
    }
  });
  const auto mean_psnr = [&](const judgement& of) {
    return psnr(std::accumulate(of.errors.begin(), of.errors.end(), 0.0) /
                static_cast<double>(std::max<std::size_t>(1, out.asked)));
  };
  out.first = share_of(first.found);
  out.best = share_of(best.found);
  out.psnr_first = mean_psnr(first);
  out.psnr_best = mean_psnr(best);
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
