#include "kernels/learn/layouts/decoder_layout.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace shoal::learn {

namespace {

const std::array<decoder_layout, 3>& all() {
  static const std::array<decoder_layout, 3> out{bloom_layout(), gpt2_layout(), llama_layout()};
  return out;
}

/// The values of a matrix [rows, columns] in the decoder's order.
std::vector<float> arranged(const std::vector<float>& from, tensor_source::order in,
                            std::size_t rows, std::size_t columns, std::size_t heads) {
  if (in == tensor_source::order::same) return from;
  std::vector<float> out(from.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      std::size_t at = c * rows + r; // transposed
      if (in == tensor_source::order::heads_together) {
        const auto dim = rows / 3, width = dim / heads;
        const auto part = r / dim, head = r % dim / width, i = r % width;
        at = ((head * 3 + part) * width + i) * columns + c;
      }
      out[r * columns + c] = from[at];
    }
  return out;
}

} // namespace

const decoder_layout* find_decoder_layout(std::string_view type) {
  const auto found = std::find_if(all().begin(), all().end(),
                                  [&](const decoder_layout& each) { return each.type == type; });
  return found == all().end() ? nullptr : &*found;
}

std::string decoder_layout_names() {
  std::string out;
  for (std::size_t i = 0; i < all().size(); ++i)
    out += (i == 0 ? "" : i + 1 == all().size() ? " and " : ", ") + std::string(all()[i].type);
  return out;
}

tensor_source source_of(const decoder_layout& layout, std::string_view slot) {
  constexpr std::string_view layer = "layer";
  const auto point = slot.find('.');
  if (point == std::string_view::npos) return layout.source_of(slot);
  auto out = layout.source_of(slot.substr(point + 1));
  out.name = std::string(layout.layer_prefix) +
             std::string(slot.substr(layer.size(), point - layer.size())) + "." + out.name;
  return out;
}

result<std::vector<float>> decoder_parameters(const decoder_layout& layout,
                                              const decoder_config& config,
                                              const model_weights& file) {
  using order = tensor_source::order;
  std::vector<float> out;
  for (const auto& slot : layout_of(config)) {
    const auto [name, in] = source_of(layout, slot.name);
    const auto full = std::string(layout.prefix) + name;
    auto shape = slot.shape;
    if (in == order::transposed) std::reverse(shape.begin(), shape.end());
    const auto one = file.take(!file.has(full) && file.has(name) ? name : full, shape);
    if (!one) return failure{one.error()};
    const auto rows = static_cast<std::size_t>(slot.shape.front());
    const auto values =
        arranged(one->values, in, rows, slot.size() / rows, static_cast<std::size_t>(config.heads));
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

} // namespace shoal::learn
