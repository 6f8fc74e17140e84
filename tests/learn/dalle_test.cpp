// kernels/learn/dalle: masks, rotary embeddings, parameter counts, gradients, and drawing.
#include "kernels/base/rng.hpp"
#include "kernels/learn/dalle.hpp"
#include "kernels/learn/dalle_geometry.hpp"
#include "kernels/learn/torch_loader.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

const dalle_config tiny{.text_vocabulary = 12,
                        .text_length = 5,
                        .codes = 7,
                        .side = 4,
                        .dim = 24,
                        .heads = 2,
                        .layers = 9,
                        .groups = 4};

/// Captions of different lengths.
std::vector<std::byte> some_samples(const dalle_config& config, std::size_t count) {
  auto random = stream(3, "dalle_samples");
  const dalle_format format{config};
  std::vector<std::byte> out(count * format.bytes());
  for (std::size_t s = 0; s < count; ++s) {
    dalle_sample one;
    const auto length =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(config.text_length) + 1));
    for (std::int64_t i = 0; i < config.text_length; ++i)
      one.text.push_back(i < length
                             ? 1 + static_cast<token_id>(random.below(
                                       static_cast<std::uint64_t>(config.text_vocabulary) - 1))
                             : 0);
    for (std::int64_t i = 0; i < config.image_length(); ++i)
      one.codes.push_back(
          static_cast<token_id>(random.below(static_cast<std::uint64_t>(config.codes))));
    format.write(one, std::span(out).subspan(s * format.bytes(), format.bytes()));
  }
  return out;
}

/// Parameters at which each tensor matters: biases are not 0, and scales are not tiny.
std::vector<float> some_parameters(const dalle& model) {
  auto out = model.initial_parameters(2);
  auto random = stream(5, "dalle_noise");
  for (const auto& slot : model.layout())
    for (std::size_t i = 0; i < slot.size(); ++i)
      out[slot.offset + i] =
          slot.name.ends_with(".scale")
              ? static_cast<float>(random.uniform(0.2, 0.6))
              : out[slot.offset + i] + static_cast<float>(0.05 * random.normal());
  return out;
}

std::vector<float> gradient_of(const dalle& model, std::span<const float> parameters,
                               std::span<const std::byte> samples) {
  std::vector<float> out(model.parameter_count());
  model.accumulate_gradient(parameters, samples, samples.size() / model.sample_bytes(), out);
  return out;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    size += std::pow(b[i], 2);
  }
  return std::sqrt(difference / size);
}

using code_place = std::pair<std::int64_t, std::int64_t>;

/// The codes that the code in (row, column) sees.
std::set<code_place> seen_from(dalle_attention kind, std::int64_t row, std::int64_t column) {
  const auto mask = dalle_mask(tiny, kind);
  const auto n = tiny.positions(), first = tiny.text_length + 1,
             at = first + tiny.side * row + column;
  std::set<code_place> out;
  for (std::int64_t q = 0; q < n; ++q) {
    const bool visible = mask[static_cast<std::size_t>(at * n + q)] != 0;
    if (q < first)
      CHECK(visible);
    else if (visible)
      out.insert({(q - first) / tiny.side, (q - first) % tiny.side});
  }
  return out;
}

} // namespace

TEST_CASE("the masks of a picture of 4 x 4 codes are those that were written down by hand") {
  using places = std::set<code_place>;
  using enum dalle_attention;
  CHECK(seen_from(row, 0, 0) == places{{0, 0}});
  CHECK(seen_from(row, 2, 2) == places{{2, 0}, {2, 1}, {2, 2}});
  CHECK(seen_from(row, 3, 0) == places{{3, 0}});
  CHECK(seen_from(column, 0, 2) == places{{0, 2}});
  CHECK(seen_from(column, 2, 1) == places{{0, 1}, {1, 1}, {2, 1}});
  CHECK(seen_from(column, 3, 2) == places{{0, 2}, {1, 2}, {2, 2}, {3, 2}});
  CHECK(seen_from(convolution, 1, 2) == places{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}});
  CHECK(seen_from(convolution, 2, 1) == places{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}});
  // Captions are causal and see no picture.
  const auto mask = dalle_mask(tiny, convolution);
  const auto n = static_cast<std::size_t>(tiny.positions());
  for (std::size_t p = 0; p <= 5; ++p)
    for (std::size_t q = 0; q < n; ++q) CHECK((mask[p * n + q] != 0) == (q <= p));
}

TEST_CASE("a convolution reaches four codes up and four to the left") {
  auto wide = tiny;
  wide.side = 8;
  const auto mask = dalle_mask(wide, dalle_attention::convolution);
  const auto n = wide.positions(), first = wide.text_length + 1, at = first + 8 * 6 + 6;
  std::int64_t seen = 0;
  for (std::int64_t q = first; q < n; ++q) {
    const auto r = (q - first) / 8, c = (q - first) % 8;
    const bool visible = mask[static_cast<std::size_t>(at * n + q)] != 0;
    CHECK(visible == (r >= 2 && r <= 6 && c >= 2 && c <= 6));
    seen += visible ? 1 : 0;
  }
  CHECK(seen == 25);
}

TEST_CASE("layers attend to rows and columns in turn and the last one is a convolution") {
  using enum dalle_attention;
  std::vector<dalle_attention> kinds;
  std::vector<std::int64_t> sets;
  for (std::int64_t i = 0; i < tiny.layers; ++i) {
    kinds.push_back(attention_of(tiny, i));
    sets.push_back(tiny.weights_of(i));
  }
  CHECK(kinds == std::vector{row, column, row, row, row, column, row, row, convolution});
  CHECK(sets == std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3, 4});
}

TEST_CASE("the published model has the published number of parameters") {
  dalle_config published;
  CHECK(kernels::end_of(dalle_layout(published)) == 125'894'244);
  published.groups = 0;
  CHECK(kernels::end_of(dalle_layout(published)) == 1'116'354'148);
}

TEST_CASE("scores of rotated vectors depend on the distance of two tokens of a caption alone") {
  const auto angles = dalle_angles(dalle_config{});
  const std::size_t pairs = 32;
  auto random = stream(1, "rotary");
  std::vector<double> query(2 * pairs), key(2 * pairs);
  for (auto& value : query) value = random.normal();
  for (auto& value : key) value = random.normal();
  const auto score = [&](std::size_t p, std::size_t q) {
    double sum = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
      const double turn = static_cast<double>(angles[p * pairs + i]) - angles[q * pairs + i];
      const double a = query[2 * i], b = query[2 * i + 1], c = key[2 * i], d = key[2 * i + 1];
      sum += (a * c + b * d) * std::cos(turn) + (a * d - b * c) * std::sin(turn);
    }
    return sum;
  };
  CHECK(score(9, 4) == doctest::Approx(score(209, 204)).epsilon(1e-4));
  CHECK(score(9, 4) != doctest::Approx(score(9, 5)).epsilon(1e-3));
  // Codes of one row differ on the column axis alone, and 60 of the 64 channels turn.
  const auto* left = angles.data() + (257 + 32 * 7 + 3) * pairs;
  const auto* right = left + 11 * pairs;
  for (std::size_t i = 0; i < pairs; ++i) CHECK((left[i] != right[i]) == (i >= 20 && i < 30));
}

TEST_CASE("samples of a picture survive packing and wrong ones are refused") {
  const dalle_config mini{.text_vocabulary = 1000, .text_length = 16, .codes = 512, .side = 8};
  const dalle_format format{mini};
  CHECK(format.bytes() == 92);
  auto samples = some_samples(mini, 3);
  CHECK(format.check(samples).ok());
  const auto second = format.read(std::span(samples).subspan(92, 92));
  std::vector<std::byte> again(92);
  format.write(second, again);
  CHECK(std::equal(again.begin(), again.end(), samples.begin() + 92));
  CHECK(format.check(std::span(samples).first(100)).error() ==
        "samples: 100 bytes are no samples of 92 each");
  auto wrong = second;
  wrong.text[3] = 1001;
  format.write(wrong, std::span(samples).subspan(92, 92));
  CHECK(format.check(samples).error() ==
        "samples: number 1 has token 1001 in its caption; the model has 1000");
  wrong.text.assign(16, 0);
  wrong.text[5] = 1;
  format.write(wrong, std::span(samples).subspan(92, 92));
  CHECK(format.check(samples).error() ==
        "samples: number 1 has a token behind the end of its caption");
}

TEST_CASE("the gradient through reversible layers is that of plain autograd") {
  const dalle reversible(tiny), plain(tiny, false);
  const auto parameters = some_parameters(plain);
  const auto samples = some_samples(tiny, 5);
  std::vector<float> gradient(plain.parameter_count());
  const double loss = plain.accumulate_gradient(parameters, samples, 5, gradient);
  CHECK(distance(gradient_of(reversible, parameters, samples), gradient) < 1e-5);
  CHECK(reversible.mean_loss(parameters, samples, 5) == doctest::Approx(loss / 5).epsilon(1e-6));
  CHECK(*std::max_element(gradient.begin(), gradient.end()) > 0.01F);
}

TEST_CASE("the gradient is the slope of the loss") {
  const dalle model(tiny);
  const auto parameters = some_parameters(model);
  const auto samples = some_samples(tiny, 4);
  const auto gradient = gradient_of(model, parameters, samples);
  for (const auto& slot : model.layout()) {
    // Along the tensor's own gradient.
    double size = 0;
    for (std::size_t i = 0; i < slot.size(); ++i)
      size += std::pow(static_cast<double>(gradient[slot.offset + i]), 2);
    if (size < 1e-6) continue;
    const double step = 0.01 / std::sqrt(size);
    const auto at = [&](double by) {
      auto moved = parameters;
      for (std::size_t i = slot.offset; i < slot.offset + slot.size(); ++i)
        moved[i] += static_cast<float>(by * gradient[i]);
      return 4 * model.mean_loss(moved, samples, 4);
    };
    INFO(slot.name);
    CHECK((at(step) - at(-step)) / (2 * step) == doctest::Approx(size).epsilon(0.03));
  }
}

TEST_CASE("the gradient of shared weights is the sum over their uses") {
  auto apart_config = tiny;
  apart_config.groups = 0;
  const dalle shared(tiny), apart(apart_config);
  const auto values = some_parameters(shared);
  const auto slot_of = [](const dalle& model, const std::string& name) {
    return *std::find_if(model.layout().begin(), model.layout().end(),
                         [&](const auto& slot) { return slot.name == name; });
  };
  // The name of a tensor of layer i without sharing, in the model with sharing.
  const auto shared_name = [&](const std::string& name) {
    if (!name.starts_with("weights.")) return name;
    const auto end = name.find('.', 8);
    return "weights." + std::to_string(tiny.weights_of(std::stoll(name.substr(8, end - 8)))) +
           name.substr(end);
  };
  std::vector<float> copied(apart.parameter_count());
  for (const auto& slot : apart.layout())
    std::copy_n(values.begin() +
                    static_cast<std::ptrdiff_t>(slot_of(shared, shared_name(slot.name)).offset),
                slot.size(), copied.begin() + static_cast<std::ptrdiff_t>(slot.offset));
  const auto samples = some_samples(tiny, 3);
  const auto each = gradient_of(apart, copied, samples);
  std::vector<float> sum(shared.parameter_count());
  for (const auto& slot : apart.layout()) {
    const auto into = slot_of(shared, shared_name(slot.name)).offset;
    for (std::size_t i = 0; i < slot.size(); ++i) sum[into + i] += each[slot.offset + i];
  }
  CHECK(distance(gradient_of(shared, values, samples), sum) < 1e-5);
}

TEST_CASE("peers with uneven batches have the gradient of one machine") {
  const dalle model(tiny);
  const auto parameters = some_parameters(model);
  const auto samples = some_samples(tiny, 21);
  std::vector<float> sum(model.parameter_count());
  std::size_t first = 0;
  for (const std::size_t count : {1, 17, 3}) {
    const auto part = gradient_of(
        model, parameters,
        std::span(samples).subspan(first * model.sample_bytes(), count * model.sample_bytes()));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    first += count;
  }
  CHECK(distance(sum, gradient_of(model, parameters, samples)) < 1e-5);
}

TEST_CASE("codes behind the first one do not depend on the padding of the caption") {
  const dalle model(tiny);
  const auto parameters = some_parameters(model);
  auto other = parameters;
  auto random = stream(9, "padding");
  // The embeddings of the padding lie behind those of the captions' tokens.
  for (std::int64_t i = tiny.text_vocabulary * tiny.dim; i < tiny.text_tokens() * tiny.dim; ++i)
    other[static_cast<std::size_t>(i)] += static_cast<float>(random.normal());
  const auto math = make_dalle_math({tiny, true, model.layout()});
  const dalle_batch captions{2, {3, 1, 4, 0, 0, 3, 1, 4, 1, 5}, {}};
  const std::vector<std::int64_t> each{0, 1};
  const auto before = math->decode(parameters, captions, each),
             after = math->decode(other, captions, each);

  const auto same = [&](std::size_t picture) {
    double most = 0;
    for (std::size_t i = 0; i < 7; ++i)
      most = std::max(most, std::abs(static_cast<double>(before->logits()[picture * 7 + i]) -
                                     after->logits()[picture * 7 + i]));
    return most < 1e-5;
  };
  // The last position of the caption predicts the first code, and it is padding here.
  CHECK(!same(0));
  CHECK(same(1));
  for (const token_id code : {2, 5}) {
    const std::vector<token_id> both{code, code};
    before->add(both);
    after->add(both);
    CHECK(same(0));
    CHECK(same(1));
  }
}

TEST_CASE("the codes of a picture weigh seven eighths of the loss") {
  const dalle_loss loss{2, 10};
  CHECK(loss.total() == doctest::Approx((2 + 7 * 10) / 8.0));
}

TEST_CASE("a picture that is drawn code by code has the likelihood of the whole pass") {
  const dalle model(tiny);
  const auto parameters = some_parameters(model);
  const auto math = make_dalle_math({tiny, true, model.layout()});
  const auto samples = some_samples(tiny, 6);
  const auto batch = model.format().batch(samples);
  const auto whole = math->losses(parameters, batch);
  // Pictures in another order than that of their captions, one of them twice.
  const std::vector<std::int64_t> caption_of{5, 0, 1, 2, 3, 4, 0};
  const auto pictures = caption_of.size();
  const auto decoder = math->decode(parameters, batch, caption_of);
  std::vector<double> sums(pictures);
  for (std::int64_t at = 0; at < tiny.image_length(); ++at) {
    std::vector<token_id> next;
    for (std::size_t s = 0; s < pictures; ++s) {
      const auto row = std::span(decoder->logits()).subspan(s * 7, 7);
      double sum = 0;
      for (const float score : row) sum += std::exp(score);
      next.push_back(batch.codes[static_cast<std::size_t>(caption_of[s] * 16 + at)]);
      sums[s] += std::log(sum) - row[static_cast<std::size_t>(next.back())];
    }
    if (at + 1 < tiny.image_length()) decoder->add(next);
  }
  for (std::size_t s = 0; s < pictures; ++s)
    CHECK(sums[s] / 16 ==
          doctest::Approx(whole[static_cast<std::size_t>(caption_of[s])].image).epsilon(1e-4));
}

TEST_CASE("a picture depends on the seed and on its number but not on the other pictures") {
  const dalle model(tiny);
  const auto parameters = some_parameters(model);
  const std::vector<token_id> caption{3, 1, 4, 0, 0};
  const sampling_options options{.temperature = 1, .top_k = 5, .top_p = 0.9};
  const auto many = model.draw(parameters, caption, 150, options, 7),
             few = model.draw(parameters, caption, 3, options, 7);
  CHECK(model.drawn_at_once() == 128);
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
  // Pictures of two captions in turn are those of each caption alone.
  const std::vector<token_id> other{2, 0, 0, 0, 0};
  std::vector<dalle_request> wanted;
  for (std::uint64_t i = 0; i < 3; ++i)
    for (const auto& one : {caption, other}) wanted.push_back({one, 7, i});
  const auto mixed = model.draw(parameters, wanted, options);
  const auto of_other = model.draw(parameters, other, 3, options, 7);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(mixed[2 * i] == few[i]);
    CHECK(mixed[2 * i + 1] == of_other[i]);
  }
  CHECK(many[0] != many[1]);
  CHECK(model.draw(parameters, caption, 3, options, 8) != few);
  for (const auto& codes : many) {
    CHECK(codes.size() == 16);
    for (const auto code : codes) CHECK((code >= 0 && code < 7));
  }
}
