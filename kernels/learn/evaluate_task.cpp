#include "kernels/learn/evaluate_task.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/task_baseline.hpp"
#include "kernels/learn/torch_loader.hpp"

#include <algorithm>
#include <utility>

namespace shoal::learn {

namespace {

/// The labels of the predicted classes. Words without a prediction have the first label.
std::vector<tag_sequence> tags_of(std::span<const labelled_text> texts,
                                  const std::vector<std::vector<token_id>>& classes,
                                  const std::vector<std::string>& labels) {
  std::vector<tag_sequence> out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto& tags = out.emplace_back(texts[i].tags.size(), labels.front());
    for (std::size_t w = 0; w < classes[i].size(); ++w)
      tags[w] = labels[static_cast<std::size_t>(classes[i][w])];
  }
  return out;
}

} // namespace

task_score score_of(task_kind kind, std::span<const labelled_text> wanted,
                    std::span<const tag_sequence> predicted) {
  SHOAL_CHECK(wanted.size() == predicted.size(), "each text has a prediction");
  double right = 0, all = 0;
  std::vector<tag_sequence> tags;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    tags.push_back(wanted[i].tags);
    for (std::size_t w = 0; w < wanted[i].tags.size(); ++w) {
      right += wanted[i].tags[w] == predicted[i][w] ? 1 : 0;
      all += 1;
    }
  }
  task_score out;
  out.accuracy = all == 0 ? 0 : right / all;
  out.score = out.precision = out.recall = out.accuracy;
  if (kind == task_kind::classification) return out;
  const auto entities = score_entities(tags, predicted);
  SHOAL_CHECK(entities.ok(), "each word has a prediction");
  out.score = entities->all.f1();
  out.precision = entities->all.precision();
  out.recall = entities->all.recall();
  return out;
}

task_score baseline_score(const task_texts& texts) {
  if (texts.kind == task_kind::ner)
    return score_of(texts.kind, texts.test, look_up_tags(texts.train, texts.test));
  std::vector<tag_sequence> predicted;
  for (auto& label : naive_bayes(texts.train, texts.test)) predicted.push_back({std::move(label)});
  return score_of(texts.kind, texts.test, predicted);
}

result<task_result> evaluate_task(const task_texts& texts, const albert_config& pretrained,
                                  std::span<const float> parameters,
                                  const pair_vocabulary& vocabulary,
                                  const evaluate_options& options) {
  if (auto loaded = load_torch(); !loaded) return failure{loaded.error()};
  use_one_thread();
  const auto labels = labels_of(texts.train, texts.kind);
  const auto samples = [&](std::span<const labelled_text> of) {
    return samples_of(of, texts.kind, labels, vocabulary, options.length);
  };
  const auto train = samples(texts.train), dev = samples(texts.dev), test = samples(texts.test);
  for (const auto* each : {&train, &dev, &test})
    if (!*each) return failure{each->error()};

  auto config = pretrained;
  config.head = texts.kind == task_kind::ner ? albert_head::tokens
                : options.mean               ? albert_head::mean
                                             : albert_head::sequence;
  config.classes = static_cast<std::int64_t>(labels.size());
  const albert_classifier model(config);
  auto training = options.training;
  auto start = parameters.empty() ? albert_initial_parameters(config, training.seed)
                                  : model.start_from(pretrained, parameters, training.seed);
  const auto measured = [&](std::span<const labelled_text> wanted,
                            const std::vector<std::vector<token_id>>& classes) {
    return score_of(texts.kind, wanted, tags_of(wanted, classes, labels));
  };
  if (options.by_score)
    training.score = [&](const auto& classes) { return measured(texts.dev, classes).score; };
  const auto tuned = fine_tune(model, std::move(start), *train, *dev, training);

  task_result out;
  out.test = measured(texts.test, model.predict(tuned.parameters, *test).classes);
  out.best_epoch = tuned.best_epoch;
  out.epochs = tuned.dev_losses.size();
  if (!tuned.dev_losses.empty())
    out.dev_loss = *std::min_element(tuned.dev_losses.begin(), tuned.dev_losses.end());
  if (!tuned.dev_scores.empty())
    out.dev_score = *std::max_element(tuned.dev_scores.begin(), tuned.dev_scores.end());
  return out;
}

} // namespace shoal::learn
