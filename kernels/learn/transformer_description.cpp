#include "kernels/learn/transformer_description.hpp"

#include "kernels/base/whole_number.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace shoal::learn {

namespace {

using nlohmann::json;

constexpr const char* workload = "transformer";

} // namespace

std::string description_of(const kernels::transformer_config& config) {
  return json{{"layers", config.layers},
              {"heads", config.heads},
              {"dim", config.dim},
              {"context", config.context},
              {"vocabulary", config.vocabulary}}
      .dump();
}

result<kernels::transformer_config> transformer_of(const checkpoint& saved) {
  if (saved.workload != workload)
    return failure{"has " + shape_text(saved) + ", which is no transformer"};
  kernels::transformer_config config;
  try {
    const auto sizes = json::parse(saved.model);
    const auto take = [&](const char* name, std::int64_t& into) {
      into = whole_number<std::int64_t>(sizes.at(name));
    };
    take("layers", config.layers);
    take("heads", config.heads);
    take("dim", config.dim);
    take("context", config.context);
    take("vocabulary", config.vocabulary);
  } catch (const json::exception&) {
    return failure{"makes no sense: its model has no layers, heads, dim, context and vocabulary "
                   "that are whole numbers"};
  }
  if (auto fine = validate(config); !fine) return failure{"makes no sense: " + fine.error()};
  if (!same_tensors(saved.tensors, layout_of(config)))
    return failure{"makes no sense: its tensors are not those of its model"};
  return config;
}

} // namespace shoal::learn
