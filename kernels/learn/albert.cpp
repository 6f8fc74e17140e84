#include "kernels/learn/albert.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/torch_loader.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::learn {

namespace {

/// ln of the sum of the exponentials.
double log_sum(std::span<const float> scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - most);
  return most + std::log(sum);
}

struct judged {
  double loss = 0, right = 0;
};

/// Compares scores [wanted.size(), width] with the wanted classes.
judged judge(std::span<const float> scores, std::span<const token_id> wanted) {
  judged out;
  const auto width = wanted.empty() ? 0 : scores.size() / wanted.size();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto row = scores.subspan(i * width, width);
    const auto at = static_cast<std::size_t>(wanted[i]);
    out.loss += log_sum(row) - row[at];
    out.right += std::max_element(row.begin(), row.end()) - row.begin() == wanted[i] ? 1 : 0;
  }
  return out;
}

} // namespace

albert::albert(const albert_config& config, bool checkpoint)
    : config_(config), layout_(albert_layout(config)),
      math_(make_albert_math({config, checkpoint, layout_})) {
  SHOAL_CHECK(config.head == albert_head::pretraining, "this class pre-trains");
}

/// Calls use(batch) for each chunk of the samples.
template <class Use>
void albert::by_chunks(std::span<const std::byte> samples, std::size_t count, Use use) const {
  SHOAL_CHECK(samples.size() == count * sample_bytes(), "samples have the size of the format");
  SHOAL_CHECK(check_samples(samples).ok(), "samples of other hosts are checked before use");
  for (std::size_t first = 0; first < count; first += chunk) {
    std::vector<albert_sample> some;
    for (std::size_t i = first; i < std::min(count, first + chunk); ++i)
      some.push_back(format().read(samples.subspan(i * sample_bytes(), sample_bytes())));
    use(albert_batch_of(some));
  }
}

double albert::accumulate_gradient(std::span<const float> parameters,
                                   std::span<const std::byte> samples, std::size_t count,
                                   std::span<float> gradient_sum) const {
  SHOAL_CHECK(parameters.size() == parameter_count() && gradient_sum.size() == parameter_count(),
              "parameters and gradient have the model's size");
  double total = 0;
  by_chunks(samples, count, [&](const albert_batch& batch) {
    total +=
        math_->accumulate_gradient(parameters, batch.input(), batch.targets(), gradient_sum).sum();
  });
  return total;
}

double albert::mean_loss(std::span<const float> parameters, std::span<const std::byte> samples,
                         std::size_t count) const {
  SHOAL_CHECK(parameters.size() == parameter_count(), "parameters have the model's size");
  double total = 0;
  by_chunks(samples, count, [&](const albert_batch& batch) {
    total += math_->losses(parameters, batch.input(), batch.targets()).sum();
  });
  return count == 0 ? 0 : total / static_cast<double>(count);
}

albert_quality albert::quality(std::span<const float> parameters,
                               std::span<const std::byte> samples, std::size_t count) const {
  SHOAL_CHECK(parameters.size() == parameter_count(), "parameters have the model's size");
  albert_quality out;
  by_chunks(samples, count, [&](const albert_batch& batch) {
    const auto scores = math_->scores(parameters, batch.input(), batch.targets());
    const auto tokens = judge(scores.labels, batch.labels);
    const auto order = judge(scores.classes, batch.classes);
    out.tokens += tokens.loss;
    out.right_tokens += tokens.right;
    out.order += order.loss;
    out.right_order += order.right;
    out.labels += batch.labels.size();
    out.samples += batch.classes.size();
  });
  const auto labels = static_cast<double>(std::max<std::size_t>(1, out.labels)),
             samples_seen = static_cast<double>(std::max<std::size_t>(1, out.samples));
  out.tokens /= labels;
  out.right_tokens /= labels;
  out.order /= samples_seen;
  out.right_order /= samples_seen;
  return out;
}

} // namespace shoal::learn
