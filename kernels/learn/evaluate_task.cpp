#include "kernels/learn/evaluate_task.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/task_baseline.hpp"
#include "kernels/learn/torch_loader.hpp"

#include <algorithm>
#include <utility>

namespace shoal::learn {

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
                                  const pair_vocabulary& vocabulary, std::int64_t length,
                                  const fine_tune_options& options) {
  if (auto loaded = load_torch(); !loaded) return failure{loaded.error()};
  use_one_thread();
  const auto labels = labels_of(texts.train, texts.kind);
  const auto samples = [&](std::span<const labelled_text> of) {
    return samples_of(of, texts.kind, labels, vocabulary, length);
  };
  const auto train = samples(texts.train), dev = samples(texts.dev), test = samples(texts.test);
  for (const auto* each : {&train, &dev, &test})
    if (!*each) return failure{each->error()};

  auto config = pretrained;
  config.head = texts.kind == task_kind::ner ? albert_head::tokens : albert_head::sequence;
  config.classes = static_cast<std::int64_t>(labels.size());
  const albert_classifier model(config);
  auto start = parameters.empty() ? albert_initial_parameters(config, options.seed)
                                  : model.start_from(pretrained, parameters, options.seed);
  const auto tuned = fine_tune(model, std::move(start), *train, *dev, options);

  std::vector<tag_sequence> predicted;
  const auto classes = model.classes(tuned.parameters, *test);
  for (std::size_t i = 0; i < texts.test.size(); ++i) {
    auto& tags = predicted.emplace_back(texts.test[i].tags.size(), labels.front());
    for (std::size_t w = 0; w < classes[i].size(); ++w)
      tags[w] = labels[static_cast<std::size_t>(classes[i][w])];
  }
  task_result out;
  out.test = score_of(texts.kind, texts.test, predicted);
  out.best_epoch = tuned.best_epoch;
  out.epochs = tuned.dev_losses.size();
  if (!tuned.dev_losses.empty())
    out.dev_loss = *std::min_element(tuned.dev_losses.begin(), tuned.dev_losses.end());
  return out;
}

} // namespace shoal::learn
