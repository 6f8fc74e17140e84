#include "kernels/learn/formats/tokenizer_config.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace shoal::learn {

namespace {

struct role {
  const char* name;
  std::array<std::string_view, 2> tokens;
};
constexpr std::array roles{
    role{"bos_token", {"[CLS]", "<s>"}},      role{"eos_token", {"[SEP]", "</s>"}},
    role{"unk_token", {"<unk>", "[UNK]"}},    role{"sep_token", {"[SEP]", "</s>"}},
    role{"pad_token", {"<pad>", "[PAD]"}},    role{"cls_token", {"[CLS]", "<s>"}},
    role{"mask_token", {"[MASK]", "<mask>"}},
};

} // namespace

std::string tokenizer_config_json(const tokenizer_description& of, std::int64_t longest) {
  nlohmann::ordered_json out{{"tokenizer_class", "PreTrainedTokenizerFast"},
                             {"model_max_length", longest}};
  for (const auto& role : roles)
    for (const auto& each : of.added) {
      if (!each.special ||
          std::find(role.tokens.begin(), role.tokens.end(), each.content) == role.tokens.end())
        continue;
      out[role.name] = {{"__type", "AddedToken"},          {"content", each.content},
                        {"single_word", each.single_word}, {"lstrip", each.strip_left},
                        {"rstrip", each.strip_right},      {"normalized", each.normalized}};
      break;
    }
  return out.dump(2) + "\n";
}

} // namespace shoal::learn
