// Baselines of the downstream tasks that need no pre-training and no training run.
#pragma once

#include "kernels/learn/task_data.hpp"

#include <span>
#include <string>
#include <vector>

namespace shoal::learn {

/// The most frequent tag of each word in the training texts; O for other words. The alphabet
/// decides between equally frequent tags.
std::vector<tag_sequence> look_up_tags(std::span<const labelled_text> train,
                                       std::span<const labelled_text> test);

/// Multinomial naive Bayes over the character 2- to 4-grams of the texts, smoothed by 0.1. The
/// label of each text. Source: Manning, Raghavan and Schuetze, "Introduction to Information
/// Retrieval", section 13.2.
std::vector<std::string> naive_bayes(std::span<const labelled_text> train,
                                     std::span<const labelled_text> test);

} // namespace shoal::learn
