#include "kernels/learn/albert_description.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/whole_number.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <utility>

namespace shoal::learn {

namespace {

using nlohmann::json;

constexpr const char* albert_workload = "albert";

using size_member = std::pair<const char*, std::int64_t albert_config::*>;

constexpr std::array<size_member, 7> sizes{{{"vocabulary", &albert_config::vocabulary},
                                            {"embedding", &albert_config::embedding},
                                            {"hidden", &albert_config::hidden},
                                            {"layers", &albert_config::layers},
                                            {"heads", &albert_config::heads},
                                            {"feed_forward", &albert_config::feed_forward},
                                            {"positions", &albert_config::positions}}};

} // namespace

std::string description_of(const albert_config& config) {
  json out;
  for (const auto& [name, member] : sizes) out[name] = config.*member;
  return json_text(out);
}

result<albert_config> albert_of(const checkpoint& saved) {
  if (saved.workload != albert_workload)
    return failure{"has " + shape_text(saved) + ", which is no albert"};
  albert_config config;
  try {
    const auto found = parse_json<json>(saved.model);
    for (const auto& [name, member] : sizes)
      config.*member = whole_number<std::int64_t>(found.at(name));
  } catch (const json::exception&) {
    return failure{
        "makes no sense: its model lacks a size of albert, or a size is no whole number"};
  }
  if (auto fine = validate(config); !fine) return failure{"makes no sense: " + fine.error()};
  if (!same_tensors(saved.tensors, albert_layout(config)))
    return failure{"makes no sense: its tensors are not those of the model that it describes"};
  return config;
}

} // namespace shoal::learn
