// The score of a pre-trained ALBERT in a downstream task. The model is fine-tuned on the training
// texts, stopped by the validation texts, and measured on the test texts.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/albert_layout.hpp"
#include "kernels/learn/fine_tune.hpp"
#include "kernels/learn/task_data.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::learn {

struct task_texts {
  task_kind kind = task_kind::ner;
  std::vector<labelled_text> train, dev, test;
};

struct task_score {
  double score = 0;                 ///< F1 of entities (ner), or accuracy (classification)
  double accuracy = 0;              ///< fraction of the words, or of the texts
  double precision = 0, recall = 0; ///< entities; classification: the accuracy
};

/// Requires: equal numbers of texts, and of tags in each.
task_score score_of(task_kind kind, std::span<const labelled_text> wanted,
                    std::span<const tag_sequence> predicted);

/// The score of look_up_tags() or naive_bayes(), trained on the training texts.
task_score baseline_score(const task_texts& texts);

struct evaluate_options {
  fine_tune_options training; ///< evaluate_task() sets its `score`
  std::int64_t length = 128;  ///< most tokens of a text, at most the positions of the model
  bool mean = true;           ///< classification: from the mean over the tokens, else the first one
  bool by_score = true; ///< the best epoch has the best validation score, else the lowest loss
};

struct task_result {
  task_score test;
  double dev_loss = 0;  ///< the lowest one
  double dev_score = 0; ///< the best one, or 0 without `by_score`
  std::size_t best_epoch = 0, epochs = 0;
};

/// `parameters` of the model `pretrained`, or empty: the encoder starts from drawn weights. Words
/// of the test that a cut sample lost count as predicted O. Loads libtorch. Requires: validate(), a
/// length that fits the model. Errors: a label in the validation or test texts that no training
/// text has; libtorch cannot be loaded.
result<task_result> evaluate_task(const task_texts& texts, const albert_config& pretrained,
                                  std::span<const float> parameters,
                                  const pair_vocabulary& vocabulary,
                                  const evaluate_options& options);

} // namespace shoal::learn
