#include "kernels/learn/fine_tune.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/torch_loader.hpp"
#include "kernels/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace shoal::learn {

namespace {

/// Tokens whose activations are in memory at once, with padding; at least one sample.
constexpr std::size_t chunk_tokens = 512;

std::size_t labels_in(std::span<const albert_sample> samples, albert_head head) {
  if (head != albert_head::tokens) return samples.size();
  std::size_t out = 0;
  for (const auto& sample : samples)
    out += sample.labels.size() -
           static_cast<std::size_t>(
               std::count(sample.labels.begin(), sample.labels.end(), albert_sample::no_label));
  return out;
}

/// Calls use(samples, their indices) for chunks of samples of similar lengths, which need little
/// padding.
template <class Use>
void by_chunks(std::span<const albert_sample> samples, Use use) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return samples[a].tokens.size() < samples[b].tokens.size();
  });
  for (std::size_t first = 0; first < order.size();) {
    std::vector<albert_sample> some;
    auto end = first;
    while (end < order.size() &&
           (end == first || (end - first + 1) * samples[order[end]].tokens.size() <= chunk_tokens))
      some.push_back(samples[order[end++]]);
    use(std::span<const albert_sample>(some), std::span(order).subspan(first, end - first));
    first = end;
  }
}

std::vector<float> dropout_of(const albert_batch& batch, const albert_config& config, double p,
                              rng random) {
  const auto rows = config.head == albert_head::tokens
                        ? batch.shape.tokens()
                        : static_cast<std::size_t>(batch.shape.samples);
  std::vector<float> out(rows * static_cast<std::size_t>(config.hidden));
  const auto kept = static_cast<float>(1 / (1 - p));
  for (auto& factor : out) factor = random.uniform() < p ? 0 : kept;
  return out;
}

/// The logarithms of the frequencies of the classes in `samples`, each counted once more than it
/// is.
std::vector<float> log_frequencies(std::span<const albert_sample> samples, albert_head head,
                                   std::size_t classes) {
  std::vector<double> counts(classes, 1.0);
  for (const auto& sample : samples)
    if (head == albert_head::tokens) {
      for (const auto label : sample.labels)
        if (label != albert_sample::no_label) counts[static_cast<std::size_t>(label)] += 1;
    } else {
      counts[static_cast<std::size_t>(sample.order)] += 1;
    }
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  std::vector<float> out;
  for (const double count : counts) out.push_back(static_cast<float>(std::log(count / all)));
  return out;
}

} // namespace

albert_classifier::albert_classifier(const albert_config& config)
    : config_(config), layout_(albert_layout(config)),
      math_(make_albert_math({config, false, layout_})) {
  SHOAL_CHECK(config.head != albert_head::pretraining, "a classifier has classes");
}

double albert_classifier::gradient(std::span<const float> parameters,
                                   std::span<const albert_sample> samples, double dropout,
                                   std::uint64_t seed, std::uint64_t step,
                                   std::span<float> gradient) const {
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  double loss = 0;
  by_chunks(samples, [&](std::span<const albert_sample> some, std::span<const std::size_t> which) {
    const auto batch = albert_batch_of(some, true);
    auto targets = batch.targets();
    std::vector<float> factors;
    if (dropout > 0)
      factors = dropout_of(batch, config_, dropout, stream(seed, "dropout", step, which.front()));
    targets.dropout = factors;
    loss += math_->accumulate_gradient(parameters, batch.input(), targets, gradient).sum();
  });
  const auto labels = std::max<std::size_t>(1, labels_in(samples, config_.head));
  const auto scale = static_cast<float>(1.0 / static_cast<double>(labels));
  for (auto& value : gradient) value *= scale;
  return loss / static_cast<double>(labels);
}

predictions albert_classifier::predict(std::span<const float> parameters,
                                       std::span<const albert_sample> samples) const {
  predictions out{0, std::vector<std::vector<token_id>>(samples.size())};
  const auto width = static_cast<std::size_t>(config_.classes);
  by_chunks(samples, [&](std::span<const albert_sample> some, std::span<const std::size_t> which) {
    const auto batch = albert_batch_of(some, true);
    const auto scores = math_->scores(parameters, batch.input(), batch.targets());
    const bool tokens = config_.head == albert_head::tokens;
    const auto& values = tokens ? scores.labels : scores.classes;
    const auto& labels = tokens ? batch.labels : batch.classes;
    const auto time = static_cast<token_id>(batch.shape.time);
    for (std::size_t row = 0; row * width < values.size(); ++row) {
      const auto of_classes = std::span(values).subspan(row * width, width);
      const auto best = std::max_element(of_classes.begin(), of_classes.end());
      const auto sample = tokens ? static_cast<std::size_t>(batch.places[row] / time) : row;
      out.classes[which[sample]].push_back(static_cast<token_id>(best - of_classes.begin()));
      double all = 0;
      for (const float score : of_classes) all += std::exp(double{score} - double{*best});
      out.mean_loss +=
          std::log(all) + double{*best} - double{of_classes[static_cast<std::size_t>(labels[row])]};
    }
  });
  out.mean_loss /= static_cast<double>(std::max<std::size_t>(1, labels_in(samples, config_.head)));
  return out;
}

std::vector<float> albert_classifier::start_from(const albert_config& pretrained,
                                                 std::span<const float> from,
                                                 std::uint64_t seed) const {
  auto out = albert_initial_parameters(config_, seed);
  const auto theirs = albert_layout(pretrained);
  for (const auto& slot : layout_) {
    const auto same = std::find_if(theirs.begin(), theirs.end(),
                                   [&](const auto& other) { return other.name == slot.name; });
    if (same == theirs.end()) continue;
    SHOAL_CHECK(same->shape == slot.shape, "the pre-trained model has the sizes of the encoder");
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(same->offset), slot.size(),
                out.begin() + static_cast<std::ptrdiff_t>(slot.offset));
  }
  return out;
}

fine_tune_options usual_fine_tuning(const albert_config& config) {
  fine_tune_options out;
  if (config.hidden >= 512) return out;
  out.learning_rate = 0.002;
  out.batch = 16;
  out.threshold = 0;
  return out;
}

fine_tuned fine_tune(const albert_classifier& model, std::vector<float> parameters,
                     std::span<const albert_sample> train, std::span<const albert_sample> dev,
                     const fine_tune_options& options) {
  SHOAL_CHECK(!train.empty() && !dev.empty() && options.batch > 0, "there is something to learn");
  const auto steps = (train.size() + options.batch - 1) / options.batch;
  kernels::optimizer_config optimizer;
  optimizer.kind = kernels::optimizer_kind::adamw;
  optimizer.learning_rate = options.learning_rate;
  optimizer.beta2 = 0.999;
  optimizer.clip_norm = 1;
  optimizer.decay_steps = std::max<std::uint64_t>(1, steps * options.epochs);
  const auto bias =
      log_frequencies(train, model.config().head, static_cast<std::size_t>(model.config().classes));
  const auto& last = model.layout().back();
  SHOAL_CHECK(last.size() == bias.size(), "the bias of the classifier is the last tensor");
  std::copy(bias.begin(), bias.end(),
            parameters.begin() + static_cast<std::ptrdiff_t>(last.offset));
  std::vector<float> state(kernels::state_size(optimizer, parameters.size())),
      gradient(parameters.size());
  fine_tuned out{parameters, {}, {}, 0};
  double lowest = std::numeric_limits<double>::infinity(); // loss
  double best = lowest; // the lowest loss, or minus the best score
  std::size_t without = 0;
  std::vector<std::size_t> order(train.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t step = 0;
  for (std::size_t epoch = 1; epoch <= options.epochs; ++epoch) {
    auto random = stream(options.seed, "fine_tune_order", epoch);
    random.shuffle(std::span(order));
    for (std::size_t first = 0; first < train.size(); first += options.batch) {
      std::vector<albert_sample> batch;
      for (std::size_t i = first; i < std::min(train.size(), first + options.batch); ++i)
        batch.push_back(train[order[i]]);
      ++step;
      model.gradient(parameters, batch, options.dropout, options.seed, step, gradient);
      kernels::step(optimizer, static_cast<std::int64_t>(step), gradient, parameters,
                    std::span(state));
    }
    const auto [loss, classes] = model.predict(parameters, dev);
    out.dev_losses.push_back(loss);
    if (options.score) out.dev_scores.push_back(options.score(classes));
    const double now = options.score ? -out.dev_scores.back() : loss;
    // A score can stand still for many epochs, in which the loss says that the model learns.
    const bool learns = best - now > options.threshold || lowest - loss > options.threshold;
    without = learns ? 0 : without + 1;
    lowest = std::min(lowest, loss);
    if (now < best) {
      best = now;
      out.parameters = parameters;
      out.best_epoch = epoch;
    }
    if (options.on_epoch && !options.on_epoch(epoch, loss)) break;
    if (without >= options.patience) break;
  }
  return out;
}

} // namespace shoal::learn
