#include "kernels/learn/lora.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/learn/formats/safetensors.hpp"
#include "kernels/learn/formats/whole_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shoal::learn {

namespace {

constexpr std::pair<std::string_view, std::string_view> modules[] = {
    {"q_proj", "attention_q"},   {"k_proj", "attention_k"}, {"v_proj", "attention_v"},
    {"o_proj", "attention_out"}, {"gate_proj", "mlp_gate"}, {"up_proj", "mlp_up"},
    {"down_proj", "mlp_down"}};

constexpr std::string_view ending_a = ".lora_A.weight", ending_b = ".lora_B.weight";

/// The model's tensor that an adapter's tensor changes. Empty for other names.
std::optional<std::string> slot_of(std::string_view name) {
  constexpr std::string_view layers = "layers.";
  name.remove_suffix(ending_a.size());
  const auto at = name.rfind(layers);
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = name.substr(at + layers.size());
  std::uint32_t layer = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), layer);
  if (read.ec != std::errc{} || read.ptr == number.data() + number.size() || *read.ptr != '.')
    return std::nullopt;
  const auto module = name.substr(name.rfind('.') + 1);
  for (const auto& [theirs, ours] : modules)
    if (module == theirs) return "layer" + std::to_string(layer) + "." + std::string(ours);
  return std::nullopt;
}

const named_tensor* find(std::span<const named_tensor> tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const named_tensor& each) { return each.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

} // namespace

result<lora_adapter> load_lora(const std::filesystem::path& folder) {
  constexpr std::uint64_t most = 1 << 20;
  const auto path = folder / "adapter_config.json";
  const auto text = read_whole_file(path, most, "adapter");
  if (!text) return failure{text.error()};
  const auto json = try_json<nlohmann::json>(*text);
  if (!json.is_object() || !json.contains("lora_alpha") || !json["lora_alpha"].is_number())
    return failure{"adapter: '" + path.string() + "': there is no number 'lora_alpha'"};
  lora_adapter out;
  out.alpha = json["lora_alpha"].get<double>();
  const auto file = safetensors::open(folder / "adapter_model.safetensors");
  if (!file) return failure{file.error()};
  for (const auto& each : file->tensors()) {
    auto values = file->read_floats(each);
    if (!values) return failure{values.error()};
    out.tensors.push_back({each.name, each.shape, std::move(*values)});
  }
  return out;
}

result<std::vector<float>> with_lora(const decoder_config& config, std::vector<float> parameters,
                                     const lora_adapter& adapter) {
  const auto layout = layout_of(config);
  if (parameters.size() != kernels::end_of(layout))
    return failure{"adapter: the model has " + std::to_string(kernels::end_of(layout)) +
                   " parameters, and " + std::to_string(parameters.size()) + " are given"};
  for (const auto& a : adapter.tensors) {
    const auto wrong = [&](const std::string& why) {
      return failure{"adapter: the tensor '" + a.name + "' " + why};
    };
    if (a.name.ends_with(ending_b)) {
      const auto other = a.name.substr(0, a.name.size() - ending_b.size()) + std::string(ending_a);
      if (find(adapter.tensors, other) == nullptr) return wrong("has no lora_A beside it");
      continue;
    }
    const auto slot_name = a.name.ends_with(ending_a) ? slot_of(a.name) : std::nullopt;
    if (!slot_name) return wrong("changes nothing that a LLaMA has");
    const auto slot = std::find_if(layout.begin(), layout.end(),
                                   [&](const auto& each) { return each.name == *slot_name; });
    if (slot == layout.end()) return wrong("is for a layer that the model lacks");
    const auto* b = find(adapter.tensors,
                         a.name.substr(0, a.name.size() - ending_a.size()) + std::string(ending_b));
    if (b == nullptr) return wrong("has no lora_B beside it");
    const auto rows = slot->shape[0], columns = slot->shape[1];
    if (a.shape.size() != 2 || b->shape.size() != 2 || a.shape[0] < 1 || a.shape[1] != columns ||
        b->shape[0] != rows || b->shape[1] != a.shape[0])
      return wrong("does not fit a matrix of " + std::to_string(rows) + " rows and " +
                   std::to_string(columns) + " columns");
    const auto rank = static_cast<std::size_t>(a.shape[0]), in = static_cast<std::size_t>(columns);
    const double scale = adapter.alpha / static_cast<double>(rank);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i)
      for (std::size_t j = 0; j < in; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < rank; ++k)
          sum += static_cast<double>(b->values[i * rank + k]) *
                 static_cast<double>(a.values[k * in + j]);
        auto& weight = parameters[slot->offset + i * in + j];
        weight = static_cast<float>(static_cast<double>(weight) + scale * sum);
      }
  }
  return parameters;
}

} // namespace shoal::learn
