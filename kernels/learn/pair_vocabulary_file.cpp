#include "kernels/learn/pair_vocabulary_file.hpp"

#include "kernels/learn/formats/tokenizer_json.hpp"

#include <memory>
#include <string>
#include <utility>

namespace shoal::learn {

result<pair_vocabulary> load_pair_vocabulary(const std::filesystem::path& path,
                                             std::int64_t tokens) {
  auto out = byte_pair_vocabulary();
  if (!path.empty()) {
    auto loaded = load_tokenizer_json(path);
    if (!loaded) return failure{loaded.error()};
    const auto codec = std::make_shared<const tokenizer>(std::move(*loaded));
    struct special {
      const char *name, *other;
      token_id pair_vocabulary::*member;
    };
    for (const auto& [name, other, member] :
         {special{"[CLS]", "<s>", &pair_vocabulary::start},
          special{"[SEP]", "</s>", &pair_vocabulary::separator},
          special{"[MASK]", "<mask>", &pair_vocabulary::mask}}) {
      auto found = codec->find(name);
      if (!found) found = codec->find(other);
      if (!found)
        return failure{"tokenizer: '" + path.string() + "' has neither " + name + " nor " + other +
                       ", which samples with masks need"};
      out.*member = *found;
    }
    out.codec = codec;
    out.space_between_words = false;
  }
  if (out.codec->vocabulary() > tokens)
    return failure{"tokenizer: " + (path.empty() ? "bytes" : "'" + path.string() + "'") + " have " +
                   std::to_string(out.codec->vocabulary()) + " tokens, and the model has " +
                   std::to_string(tokens) + "; set workload.vocabulary to at least that"};
  out.tokens = tokens;
  return out;
}

} // namespace shoal::learn
