#include "kernels/learn/albert_layout.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"

#include <string>
#include <utility>

namespace shoal::learn {

namespace {

constexpr double initial_deviation = 0.02;

class layout_builder {
public:
  void add(std::string name, std::vector<std::int64_t> shape) {
    slots_.push_back({std::move(name), offset_, std::move(shape)});
    offset_ += slots_.back().size();
  }
  /// The weight [out, in] and the bias [out] of a linear map.
  void linear(const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  }
  void norm(const std::string& name, std::int64_t width) {
    add(name + ".weight", {width});
    add(name + ".bias", {width});
  }
  std::vector<kernels::tensor_slot> take() { return std::move(slots_); }

private:
  std::vector<kernels::tensor_slot> slots_;
  std::size_t offset_ = 0;
};

void add_head(layout_builder& to, const albert_config& c) {
  const auto pooler = [&] { to.linear("albert.pooler", c.hidden, c.hidden); };
  switch (c.head) {
  case albert_head::pretraining:
    pooler();
    to.add("predictions.bias", {c.vocabulary});
    to.norm("predictions.LayerNorm", c.embedding);
    to.linear("predictions.dense", c.embedding, c.hidden);
    to.linear("sop_classifier.classifier", 2, c.hidden);
    return;
  case albert_head::tokens:
  case albert_head::mean:
    to.linear("classifier", c.classes, c.hidden);
    return;
  case albert_head::sequence:
    pooler();
    to.linear("classifier", c.classes, c.hidden);
    return;
  }
}

} // namespace

result<void> validate(const albert_config& config) {
  struct bound {
    const char* name;
    std::int64_t value, least, most;
  };
  for (const bound& b :
       {bound{"vocabulary", config.vocabulary, 1, std::int64_t{1} << 24},
        bound{"embedding", config.embedding, 1, 65536}, bound{"hidden", config.hidden, 1, 65536},
        bound{"layers", config.layers, 1, 1024}, bound{"heads", config.heads, 1, 1024},
        bound{"feed_forward", config.feed_forward, 1, 1 << 20},
        bound{"positions", config.positions, 1, 65535}, bound{"classes", config.classes, 1, 65536}})
    if (b.value < b.least || b.value > b.most)
      return failure{"model: " + std::string(b.name) + " is " + std::to_string(b.value) +
                     "; it must be from " + std::to_string(b.least) + " to " +
                     std::to_string(b.most)};
  if (config.hidden % config.heads != 0)
    return failure{"model: hidden " + std::to_string(config.hidden) + " cannot be divided among " +
                   std::to_string(config.heads) + " heads"};
  return {};
}

std::vector<kernels::tensor_slot> albert_layout(const albert_config& c) {
  SHOAL_CHECK(validate(c).ok(), "the model's sizes are validated where they are read");
  layout_builder out;
  const std::string embeddings = "albert.embeddings.";
  out.add(embeddings + "word_embeddings.weight", {c.vocabulary, c.embedding});
  out.add(embeddings + "position_embeddings.weight", {c.positions, c.embedding});
  out.add(embeddings + "token_type_embeddings.weight", {albert_segments, c.embedding});
  out.norm(embeddings + "LayerNorm", c.embedding);
  out.linear("albert.encoder.embedding_hidden_mapping_in", c.hidden, c.embedding);
  const std::string layer = "albert.encoder.albert_layer_groups.0.albert_layers.0.";
  out.norm(layer + "full_layer_layer_norm", c.hidden);
  for (const char* part : {"query", "key", "value", "dense"})
    out.linear(layer + "attention." + part, c.hidden, c.hidden);
  out.norm(layer + "attention.LayerNorm", c.hidden);
  out.linear(layer + "ffn", c.feed_forward, c.hidden);
  out.linear(layer + "ffn_output", c.hidden, c.feed_forward);
  add_head(out, c);
  return out.take();
}

std::vector<float> albert_initial_parameters(const albert_config& config, std::uint64_t seed) {
  const auto slots = albert_layout(config);
  std::vector<float> values(kernels::end_of(slots));
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const auto& slot = slots[s];
    float* out = values.data() + slot.offset;
    const bool vector = slot.shape.size() == 1;
    if (vector && slot.name.ends_with(".bias")) continue;
    auto random = stream(seed, "albert_parameters", s);
    for (std::size_t i = 0; i < slot.size(); ++i)
      out[i] = vector ? 1.0F : static_cast<float>(random.normal(0.0, initial_deviation));
    if (s == 0)
      for (std::int64_t i = 0; i < config.embedding; ++i)
        out[albert_padding * config.embedding + i] = 0;
  }
  return values;
}

bool albert_decays(std::string_view name) noexcept {
  return name.find("bias") == std::string_view::npos &&
         name.find("LayerNorm.weight") == std::string_view::npos;
}

} // namespace shoal::learn
