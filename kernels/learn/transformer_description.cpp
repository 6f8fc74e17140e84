#include "kernels/learn/transformer_description.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/whole_number.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace shoal::learn {

namespace {

using nlohmann::json;

constexpr const char* workload = "transformer";

} // namespace

std::string description_of(const kernels::transformer_config& config, const maxout_config& maxout) {
  json out{{"layers", config.layers},
           {"heads", config.heads},
           {"dim", config.dim},
           {"context", config.context},
           {"vocabulary", config.vocabulary}};
  if (maxout.pieces > 0) {
    out["bottlenecks"] = maxout.pieces;
    out["maxout"] = maxout.group;
  }
  return json_text(out);
}

result<described_transformer> any_transformer_of(const checkpoint& saved) {
  if (saved.workload != workload)
    return failure{"has " + shape_text(saved) + ", which is no transformer"};
  described_transformer out;
  auto& config = out.config;
  try {
    const auto sizes = parse_json<json>(saved.model);
    const auto take = [&](const char* name, std::int64_t& into) {
      into = whole_number<std::int64_t>(sizes.at(name));
    };
    take("layers", config.layers);
    take("heads", config.heads);
    take("dim", config.dim);
    take("context", config.context);
    take("vocabulary", config.vocabulary);
    if (sizes.contains("bottlenecks")) {
      take("bottlenecks", out.maxout.pieces);
      take("maxout", out.maxout.group);
    }
  } catch (const json::exception&) {
    return failure{"makes no sense: its model has no layers, heads, dim, context and vocabulary "
                   "that are whole numbers"};
  }
  if (auto fine = validate(config); !fine) return failure{"makes no sense: " + fine.error()};
  if (auto fine = validate(out.maxout, config.dim, config.layers); !fine)
    return failure{"makes no sense: " + fine.error()};
  if (!same_tensors(saved.tensors, layout_of(config, out.maxout)))
    return failure{"makes no sense: its tensors are not those of its model"};
  return out;
}

result<kernels::transformer_config> transformer_of(const checkpoint& saved) {
  const auto out = any_transformer_of(saved);
  if (!out) return failure{out.error()};
  if (out->maxout.pieces > 0)
    return failure{"has a transformer with bottlenecks (workload.maxout), which only training and "
                   "'shoal generate' know"};
  return out->config;
}

} // namespace shoal::learn
