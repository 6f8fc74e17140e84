// The names of special tokens in the vocabularies of masked language models. Two traditions exist,
// and sahajBERT's vocabulary mixes them.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace shoal::learn {

/// The first name is the one that train_tokenizer() gives.
using special_names = std::array<std::string_view, 2>;

namespace special {
inline constexpr special_names padding{"<pad>", "[PAD]"}, unknown{"<unk>", "[UNK]"},
    start{"[CLS]", "<s>"}, separator{"[SEP]", "</s>"}, mask{"[MASK]", "<mask>"};
} // namespace special

constexpr bool names(const special_names& token, std::string_view content) {
  return std::find(token.begin(), token.end(), content) != token.end();
}

} // namespace shoal::learn
