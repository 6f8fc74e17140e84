// kernels/learn/lora: adapters in a model's weights.
#include "kernels/base/rng.hpp"
#include "kernels/learn/formats/safetensors.hpp"
#include "kernels/learn/lora.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::learn;

namespace {

decoder_config small() {
  decoder_config out;
  out.layers = 2;
  out.heads = 2;
  out.kv_heads = 1;
  out.dim = 8;
  out.hidden = 12;
  out.context = 16;
  out.vocabulary = 20;
  return out;
}

named_tensor drawn(const std::string& name, std::int64_t rows, std::int64_t columns) {
  named_tensor out{name, {rows, columns}, {}};
  auto random = stream(5, name);
  for (std::int64_t i = 0; i < rows * columns; ++i)
    out.values.push_back(static_cast<float>(random.normal()));
  return out;
}

lora_adapter some_adapter() {
  const std::string q = "base_model.model.model.layers.1.self_attn.q_proj.lora_",
                    k = "base_model.model.model.layers.0.self_attn.k_proj.lora_",
                    down = "base_model.model.model.layers.0.mlp.down_proj.lora_";
  return {6,
          {drawn(q + "A.weight", 3, 8), drawn(q + "B.weight", 8, 3), drawn(k + "A.weight", 2, 8),
           drawn(k + "B.weight", 4, 2), drawn(down + "A.weight", 1, 12),
           drawn(down + "B.weight", 8, 1)}};
}

} // namespace

TEST_CASE("lora: each changed weight is W + alpha / r B A and all others stay") {
  const auto config = small();
  const auto layout = layout_of(config);
  std::vector<float> before(kernels::end_of(layout));
  auto random = stream(1, "weights");
  for (auto& each : before) each = static_cast<float>(random.normal());
  const auto adapter = some_adapter();
  const auto after = with_lora(config, before, adapter);
  REQUIRE_MESSAGE(after.ok(), after.error());
  for (const auto& slot : layout) {
    const named_tensor *a = nullptr, *b = nullptr;
    if (slot.name == "layer1.attention_q") a = &adapter.tensors[0], b = &adapter.tensors[1];
    if (slot.name == "layer0.attention_k") a = &adapter.tensors[2], b = &adapter.tensors[3];
    if (slot.name == "layer0.mlp_down") a = &adapter.tensors[4], b = &adapter.tensors[5];
    for (std::size_t i = 0; i < slot.size(); ++i) {
      double expected = before[slot.offset + i];
      if (a != nullptr) {
        const auto in = static_cast<std::size_t>(slot.shape[1]);
        const auto rank = static_cast<std::size_t>(a->shape[0]);
        for (std::size_t k = 0; k < rank; ++k)
          expected +=
              6.0 / static_cast<double>(rank) *
              static_cast<double>(b->values[i / in * rank + k] * a->values[k * in + i % in]);
      }
      REQUIRE((*after)[slot.offset + i] == doctest::Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("lora: a folder of peft has the adapter that was written to it") {
  const scratch_folder folder;
  const auto adapter = some_adapter();
  REQUIRE(write_safetensors(folder.path / "adapter_model.safetensors", adapter.tensors).ok());
  const auto config = folder.path / "adapter_config.json";
  folder.write("adapter_config.json", R"({"peft_type": "LORA", "r": 3})");
  CHECK(load_lora(folder.path).error() ==
        "adapter: '" + config.string() + "': there is no number 'lora_alpha'");
  folder.write("adapter_config.json", R"({"peft_type": "LORA", "r": 3, "lora_alpha": 6})");
  const auto read = load_lora(folder.path);
  REQUIRE_MESSAGE(read.ok(), read.error());
  CHECK(read->alpha == 6);
  const std::vector<float> zeros(kernels::end_of(layout_of(small())));
  CHECK(with_lora(small(), zeros, *read).value() == with_lora(small(), zeros, adapter).value());
}

TEST_CASE("lora: an adapter that does not fit is refused with the tensor's name") {
  const std::vector<float> zeros(kernels::end_of(layout_of(small())));
  const auto why = [&](lora_adapter adapter) { return with_lora(small(), zeros, adapter).error(); };
  const std::string q = "model.layers.1.self_attn.q_proj.lora_";
  CHECK(why({1, {drawn(q + "A.weight", 3, 8)}}) ==
        "adapter: the tensor 'model.layers.1.self_attn.q_proj.lora_A.weight' has no lora_B beside "
        "it");
  CHECK(why({1, {drawn(q + "B.weight", 8, 3)}}) ==
        "adapter: the tensor 'model.layers.1.self_attn.q_proj.lora_B.weight' has no lora_A beside "
        "it");
  CHECK(why({1, {drawn(q + "A.weight", 3, 8), drawn(q + "B.weight", 8, 2)}}) ==
        "adapter: the tensor 'model.layers.1.self_attn.q_proj.lora_A.weight' does not fit a matrix "
        "of 8 rows and 8 columns");
  CHECK(why({1, {drawn("model.layers.2.self_attn.q_proj.lora_A.weight", 3, 8)}}) ==
        "adapter: the tensor 'model.layers.2.self_attn.q_proj.lora_A.weight' is for a layer that "
        "the model lacks");
  CHECK(why({1, {drawn("model.layers.1.router.lora_A.weight", 3, 8)}}) ==
        "adapter: the tensor 'model.layers.1.router.lora_A.weight' changes nothing that a LLaMA "
        "has");
}
