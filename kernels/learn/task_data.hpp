// Labelled texts of a downstream task, and their samples for ALBERT. Two tasks are known:
//   ner             a tag for each word: lines 'word TAB tag', an empty line between sentences
//   classification  a label for each text: lines of columns that tabs separate. A first line with a
//                   column `text` names the columns: `text`, and `label` or `category`. Without
//                   it each line is 'label TAB text'
// A byte order mark at the start is left out.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/albert_layout.hpp"
#include "kernels/learn/albert_sample.hpp"
#include "kernels/learn/entity_score.hpp"
#include "kernels/learn/masked_pair.hpp"

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

enum class task_kind : std::uint8_t { ner, classification };

/// A sentence with a tag for each word, or a text with its label: one word and one tag.
struct labelled_text {
  std::vector<std::string> words;
  tag_sequence tags;
};

struct labelled_file {
  std::vector<labelled_text> texts;
  std::size_t left_out = 0; ///< lines without a tab
};

/// Tags in `outside` count as O. Errors: a file that cannot be read, a header without the columns.
/// A file without a labelled text. More lines without a tab than one in a hundred: the first such
/// line is named.
result<labelled_file> read_labelled(const std::string& path, task_kind kind,
                                    const std::set<std::string>& outside = {});
result<labelled_file> parse_labelled(std::string_view contents, const std::string& name,
                                     task_kind kind, const std::set<std::string>& outside = {});

/// The classes of a task: O first, then the others in their order.
std::vector<std::string> labels_of(std::span<const labelled_text> texts, task_kind kind);

/// The samples that ALBERT takes. The first token of a word has the word's class, and the other
/// tokens have none. Words beyond `length` tokens are cut off. Errors: a label that `labels` lacks.
result<std::vector<albert_sample>> samples_of(std::span<const labelled_text> texts, task_kind kind,
                                              std::span<const std::string> labels,
                                              const pair_vocabulary& vocabulary,
                                              std::int64_t length);

} // namespace shoal::learn
