#include "kernels/learn/dalle_description.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/whole_number.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <utility>

namespace shoal::learn {

namespace {

using nlohmann::json;

constexpr const char* dalle_workload = "dalle";

using dalle_member = std::pair<const char*, std::int64_t dalle_config::*>;

constexpr std::array<dalle_member, 8> dalle_sizes{
    {{"text_vocabulary", &dalle_config::text_vocabulary},
     {"text_length", &dalle_config::text_length},
     {"codes", &dalle_config::codes},
     {"side", &dalle_config::side},
     {"dim", &dalle_config::dim},
     {"heads", &dalle_config::heads},
     {"layers", &dalle_config::layers},
     {"groups", &dalle_config::groups}}};

} // namespace

std::string description_of(const dalle_config& config) {
  json out;
  for (const auto& [name, member] : dalle_sizes) out[name] = config.*member;
  return json_text(out);
}

result<dalle_config> dalle_of(const checkpoint& saved) {
  if (saved.workload != dalle_workload)
    return failure{"has " + shape_text(saved) + ", which is no dalle"};
  dalle_config config;
  try {
    const auto found = parse_json<json>(saved.model);
    for (const auto& [name, member] : dalle_sizes)
      config.*member = whole_number<std::int64_t>(found.at(name));
  } catch (const json::exception&) {
    return failure{"makes no sense: its model lacks a size of dalle, or a size is no whole number"};
  }
  if (auto fine = validate(config); !fine) return failure{"makes no sense: " + fine.error()};
  if (!same_tensors(saved.tensors, dalle_layout(config)))
    return failure{"makes no sense: its tensors are not those of the model that it describes"};
  return config;
}

} // namespace shoal::learn
