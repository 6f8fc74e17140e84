#include "kernels/learn/formats/tokenizer_config.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/learn/tokenizer/special_tokens.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace shoal::learn {

namespace {

struct role {
  const char* name;
  special_names tokens;
};
constexpr std::array roles{
    role{"bos_token", special::start},   role{"eos_token", special::separator},
    role{"unk_token", special::unknown}, role{"sep_token", special::separator},
    role{"pad_token", special::padding}, role{"cls_token", special::start},
    role{"mask_token", special::mask},
};

} // namespace

std::string tokenizer_config_json(const tokenizer_description& of, std::int64_t longest) {
  nlohmann::ordered_json out{{"tokenizer_class", "PreTrainedTokenizerFast"},
                             {"model_max_length", longest}};
  for (const auto& role : roles)
    for (const auto& each : of.added) {
      if (!each.special || !names(role.tokens, each.content)) continue;
      out[role.name] = {{"__type", "AddedToken"},          {"content", each.content},
                        {"single_word", each.single_word}, {"lstrip", each.strip_left},
                        {"rstrip", each.strip_right},      {"normalized", each.normalized}};
      break;
    }
  return json_text(out, 2) + "\n";
}

} // namespace shoal::learn
