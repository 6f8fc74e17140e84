// Precision, recall and F1 of named entities, by the default rules of seqeval (which are those of
// conlleval). Tags are O, or a prefix and a type, such as B-PER and I-PER.
//   An entity ends before a tag that is O or begins with B, and before a tag of another type.
//   An entity starts at a tag that begins with B, and at a tag I after O or after another type.
// So I-PER after O is an entity, and I-PER I-LOC are two. The prefixes E, S, L and U of other
// schemes are read, too. Each sentence ends like before O. An entity is right if its type, its
// start and its end are.
// Source: Nakayama, "seqeval", metrics/sequence_labeling.py (get_entities); Tjong Kim Sang and De
// Meulder, "Introduction to the CoNLL-2003 Shared Task" (conlleval.pl).
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

/// The tokens [first, last] of a sentence.
struct entity {
  std::string type;
  std::size_t first = 0, last = 0;
  bool operator==(const entity&) const = default;
  auto operator<=>(const entity&) const = default;
};

using tag_sequence = std::vector<std::string>;

/// The entities of one sentence, in their order. A tag without '-' has the type '_'.
std::vector<entity> entities_in(const tag_sequence& tags);

struct entity_counts {
  std::size_t right = 0, predicted = 0, wanted = 0;
  double precision() const noexcept; ///< 0 without predicted entities
  double recall() const noexcept;    ///< 0 without wanted entities
  double f1() const noexcept;        ///< 0 if precision and recall are 0
};

struct entity_score {
  entity_counts all; ///< all types together: the micro average
  std::map<std::string, entity_counts> by_type;
};

/// Errors: another number of sentences, or of tags in a sentence (which).
result<entity_score> score_entities(std::span<const tag_sequence> wanted,
                                    std::span<const tag_sequence> predicted);

} // namespace shoal::learn
