#include "kernels/learn/pictures/contrastive.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/dot.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace shoal::learn {

namespace {

constexpr std::size_t word_width = 64, code_width = 16, inner_width = 128, vector_width = 64;
constexpr float first_scale = 2.659F; // ln(1 / 0.07), as in CLIP

/// y = M x.
void multiply(const float* m, std::size_t rows, std::span<const float> x, float* y) {
  for (std::size_t r = 0; r < rows; ++r, m += x.size()) y[r] = dot(m, x.data(), x.size());
}

/// Adds upstream x^T to the gradient of M, and M^T upstream to that of x.
void multiply_back(const float* m, std::span<const float> upstream, std::span<const float> x,
                   float* of_m, float* of_x) {
  for (const float d : upstream) {
    if (d != 0)
      for (std::size_t c = 0; c < x.size(); ++c) {
        of_m[c] += d * x[c];
        of_x[c] += d * m[c];
      }
    m += x.size();
    of_m += x.size();
  }
}

} // namespace

struct contrastive_pair::tower_pass {
  std::vector<float> input, inner, out, normalized;
  float norm = 0;
};

contrastive_pair::contrastive_pair(contrastive_sizes sizes, std::uint64_t seed) : sizes_(sizes) {
  std::size_t end = 0;
  const auto add = [&](std::size_t rows, std::size_t columns) {
    const matrix out{end, rows, columns};
    end += rows * columns;
    return out;
  };
  words_ = add(sizes.tokens, word_width);
  text_first_ = add(inner_width, word_width);
  text_second_ = add(vector_width, inner_width);
  entries_ = add(sizes.codes, code_width);
  image_first_ = add(inner_width, code_width * sizes.places);
  image_second_ = add(vector_width, inner_width);
  scale_ = end;
  parameters_.resize(end + 1);
  auto random = stream(seed, "contrastive_parameters");
  for (const auto* one :
       {&words_, &text_first_, &text_second_, &entries_, &image_first_, &image_second_}) {
    const bool table = one == &words_ || one == &entries_;
    const double deviation = table ? 1 : std::sqrt(2 / static_cast<double>(one->columns));
    for (std::size_t i = 0; i < one->rows * one->columns; ++i)
      parameters_[one->offset + i] = static_cast<float>(random.normal(0, deviation));
  }
  parameters_[scale_] = first_scale;
}

std::vector<float> contrastive_pair::caption_input(std::span<const token_id> text) const {
  std::vector<float> out(word_width);
  for (const auto token : text)
    for (std::size_t i = 0; i < word_width; ++i)
      out[i] += parameters_[words_.offset + static_cast<std::size_t>(token) * word_width + i] /
                static_cast<float>(text.size());
  return out;
}

std::vector<float> contrastive_pair::picture_input(std::span<const token_id> codes) const {
  SHOAL_CHECK(codes.size() == sizes_.places, "a picture has a code for each place");
  std::vector<float> out;
  out.reserve(codes.size() * code_width);
  for (const auto code : codes) {
    const auto* entry =
        parameters_.data() + entries_.offset + static_cast<std::size_t>(code) * code_width;
    out.insert(out.end(), entry, entry + code_width);
  }
  return out;
}

contrastive_pair::tower_pass contrastive_pair::forward(std::vector<float> input,
                                                       const matrix& first,
                                                       const matrix& second) const {
  tower_pass out{
      std::move(input), std::vector<float>(first.rows), std::vector<float>(second.rows), {}, 0};
  multiply(parameters_.data() + first.offset, first.rows, out.input, out.inner.data());
  for (auto& value : out.inner) value = std::max(value, 0.0F);
  multiply(parameters_.data() + second.offset, second.rows, out.inner, out.out.data());
  out.norm = std::sqrt(dot(out.out.data(), out.out.data(), out.out.size())) + 1e-6F;
  for (const float value : out.out) out.normalized.push_back(value / out.norm);
  return out;
}

std::vector<float> contrastive_pair::backward(const tower_pass& pass,
                                              std::span<const float> upstream, const matrix& first,
                                              const matrix& second,
                                              std::span<float> gradient_sum) const {
  const float along = dot(pass.normalized.data(), upstream.data(), upstream.size());
  std::vector<float> of_out(upstream.size()), of_inner(first.rows), of_input(pass.input.size());
  for (std::size_t i = 0; i < of_out.size(); ++i)
    of_out[i] = (upstream[i] - along * pass.normalized[i]) / pass.norm;
  multiply_back(parameters_.data() + second.offset, of_out, pass.inner,
                gradient_sum.data() + second.offset, of_inner.data());
  for (std::size_t i = 0; i < of_inner.size(); ++i)
    if (pass.inner[i] <= 0) of_inner[i] = 0;
  multiply_back(parameters_.data() + first.offset, of_inner, pass.input,
                gradient_sum.data() + first.offset, of_input.data());
  return of_input;
}

std::vector<float> contrastive_pair::caption_vector(std::span<const token_id> text) const {
  return forward(caption_input(text), text_first_, text_second_).normalized;
}

std::vector<float> contrastive_pair::picture_vector(std::span<const token_id> codes) const {
  return forward(picture_input(codes), image_first_, image_second_).normalized;
}

double contrastive_pair::loss(std::span<const captioned_codes> batch,
                              std::span<float> gradient_sum) const {
  SHOAL_CHECK(batch.size() > 1, "a contrast needs two samples");
  const auto n = batch.size();
  std::vector<tower_pass> captions, pictures;
  for (const auto& one : batch) {
    captions.push_back(forward(caption_input(one.text), text_first_, text_second_));
    pictures.push_back(forward(picture_input(one.codes), image_first_, image_second_));
  }
  const float scale = std::exp(parameters_[scale_]);
  std::vector<float> similar(n * n), gradient(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      similar[i * n + j] = scale * dot(captions[i].normalized.data(), pictures[j].normalized.data(),
                                       captions[i].normalized.size());
  double total = 0;
  // Rows are the pictures of a caption, and columns the captions of a picture.
  for (const bool rows : {true, false})
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = [&](std::size_t j) { return rows ? i * n + j : j * n + i; };
      float most = similar[at(0)];
      for (std::size_t j = 1; j < n; ++j) most = std::max(most, similar[at(j)]);
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) sum += std::exp(similar[at(j)] - most);
      const double share = 0.5 / static_cast<double>(n);
      total += share * (most + std::log(sum) - similar[at(i)]);
      for (std::size_t j = 0; j < n; ++j)
        gradient[at(j)] +=
            static_cast<float>(share * (std::exp(similar[at(j)] - most) / sum - (i == j ? 1 : 0)));
    }
  if (gradient_sum.empty()) return total;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<float> of_caption(vector_width), of_picture(vector_width);
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < vector_width; ++k) {
        of_caption[k] += scale * gradient[i * n + j] * pictures[j].normalized[k];
        of_picture[k] += scale * gradient[j * n + i] * captions[j].normalized[k];
      }
    for (std::size_t j = 0; j < n; ++j)
      gradient_sum[scale_] += gradient[i * n + j] * similar[i * n + j];
    const auto of_words =
        backward(captions[i], of_caption, text_first_, text_second_, gradient_sum);
    for (const auto token : batch[i].text)
      for (std::size_t k = 0; k < word_width; ++k)
        gradient_sum[words_.offset + static_cast<std::size_t>(token) * word_width + k] +=
            of_words[k] / static_cast<float>(batch[i].text.size());
    const auto of_codes =
        backward(pictures[i], of_picture, image_first_, image_second_, gradient_sum);
    for (std::size_t p = 0; p < sizes_.places; ++p)
      for (std::size_t k = 0; k < code_width; ++k)
        gradient_sum[entries_.offset + static_cast<std::size_t>(batch[i].codes[p]) * code_width +
                     k] += of_codes[p * code_width + k];
  }
  return total;
}

void contrastive_pair::train(std::span<const captioned_codes> samples,
                             const contrastive_training& options,
                             const std::function<void(std::size_t, double)>& progress) {
  SHOAL_CHECK(samples.size() > 1, "a contrast needs two samples");
  kernels::optimizer_config how;
  how.kind = kernels::optimizer_kind::adamw;
  how.learning_rate = options.learning_rate;
  how.weight_decay = 0.01;
  std::vector<std::byte> state(kernels::state_bytes(how, parameters_.size()));
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto random = stream(options.seed, "contrastive_order");
  const auto batch = std::min(options.batch, samples.size());
  std::int64_t step = 0;
  for (std::size_t pass = 1; pass <= options.passes; ++pass) {
    random.shuffle(std::span(order));
    double total = 0;
    std::size_t steps = 0;
    for (std::size_t at = 0; at + batch <= order.size(); at += batch, ++steps) {
      std::vector<captioned_codes> some;
      for (std::size_t i = at; i < at + batch; ++i) some.push_back(samples[order[i]]);
      std::vector<float> gradient(parameters_.size());
      total += loss(some, gradient);
      kernels::step(how, ++step, gradient, parameters_, state, {});
    }
    if (progress) progress(pass, total / static_cast<double>(steps));
  }
}

} // namespace shoal::learn
