#include "kernels/learn/pair_vocabulary_file.hpp"

#include "kernels/learn/formats/tokenizer_json.hpp"
#include "kernels/learn/tokenizer/special_tokens.hpp"

#include <fmt/format.h>

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
    struct needed {
      const special_names& names;
      token_id& into;
    };
    for (const auto& [names, into] :
         {needed{special::start, out.start}, needed{special::separator, out.separator},
          needed{special::mask, out.mask}}) {
      auto found = codec->find(names[0]);
      if (!found) found = codec->find(names[1]);
      if (!found)
        return failure{
            fmt::format("tokenizer: '{}' has neither {} nor {}, which samples with masks need",
                        path.string(), names[0], names[1])};
      into = *found;
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
