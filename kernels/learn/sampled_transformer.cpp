#include "kernels/learn/sampled_transformer.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/transformer_math.hpp"

#include <algorithm>
#include <utility>

namespace shoal::learn {

sampled_transformer::sampled_transformer(const kernels::transformer_config& config,
                                         std::vector<kernels::tensor_slot> layout)
    : config_(config), layout_(std::move(layout)), parameter_count_(kernels::end_of(layout_)) {}

result<void> sampled_transformer::check_samples(std::span<const std::byte> samples) const {
  if (auto whole = check_whole_samples(samples, sample_bytes()); !whole) return whole;
  return check_tokens(samples, config_.vocabulary);
}

/// Calls use(tokens, count) for each chunk of the samples.
template <class Use>
void sampled_transformer::by_chunks(std::span<const std::byte> samples, std::size_t count,
                                    Use use) const {
  SHOAL_CHECK(samples.size() == count * sample_bytes(), "a sample is context + 1 tokens");
  const auto tokens_of_sample = context() + 1;
  std::vector<token_id> tokens(std::min(transformer_chunk, count) * tokens_of_sample);
  for (std::size_t first = 0; first < count; first += transformer_chunk) {
    const auto now = std::min(transformer_chunk, count - first);
    const auto into = std::span(tokens).first(now * tokens_of_sample);
    decode_tokens(samples.subspan(first * sample_bytes(), now * sample_bytes()), config_.vocabulary,
                  into);
    check_ids(into);
    use(std::span<const token_id>(into), now);
  }
}

void sampled_transformer::check_ids(std::span<const token_id> tokens) const {
  const auto known = [&](token_id id) { return id >= 0 && id < config_.vocabulary; };
  SHOAL_CHECK(std::all_of(tokens.begin(), tokens.end(), known),
              "samples of other hosts are checked before they are used");
}

double sampled_transformer::accumulate_gradient(std::span<const float> parameters,
                                                std::span<const std::byte> samples,
                                                std::size_t count,
                                                std::span<float> gradient_sum) const {
  SHOAL_CHECK(parameters.size() == parameter_count_ && gradient_sum.size() == parameter_count_,
              "parameters and gradient have the model's size");
  double total = 0;
  by_chunks(samples, count, [&](std::span<const token_id> tokens, std::size_t now) {
    total += add_gradient(parameters, tokens, now, gradient_sum);
  });
  return total;
}

double sampled_transformer::mean_loss(std::span<const float> parameters,
                                      std::span<const std::byte> samples, std::size_t count) const {
  SHOAL_CHECK(parameters.size() == parameter_count_, "parameters have the model's size");
  double total = 0;
  by_chunks(samples, count, [&](std::span<const token_id> tokens, std::size_t now) {
    total += sum_of_losses(parameters, tokens, now);
  });
  return count == 0 ? 0 : total / static_cast<double>(config_.context) / static_cast<double>(count);
}

std::vector<float> sampled_transformer::next_logits(std::span<const float> parameters,
                                                    std::span<const token_id> prompt) const {
  SHOAL_CHECK(parameters.size() == parameter_count_, "parameters have the model's size");
  SHOAL_CHECK(!prompt.empty(), "a prediction needs at least one token before it");
  const auto seen = prompt.last(std::min(prompt.size(), context()));
  check_ids(seen);
  return logits_after(parameters, seen);
}

} // namespace shoal::learn
