#include "kernels/learn/formats/model_config.hpp"
#include "kernels/learn/formats/safetensors.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace shoal;
using namespace shoal::learn;
using namespace shoal::learn::hugging_face;

namespace {

std::string error_of(const std::string& text) {
  const auto read = parse_model_config(text, "config.json");
  return read ? "none" : read.error();
}

/// Whether the file has just the tensors that the config lists, with their shapes.
void agrees(const model_config& config, const safetensors& file) {
  const auto tensors = tensors_of(config);
  REQUIRE(tensors.ok());
  CHECK(file.tensors().size() == tensors->size());
  for (const auto& each : *tensors) {
    const auto got = file.take(each.name, each.shape);
    CHECK_MESSAGE(got.ok(), (got.ok() ? "" : got.error()));
  }
}

} // namespace

TEST_CASE("config.json: the parameters of published models are counted") {
  // albert-large-v2 with sahajBERT's vocabulary: 17,939,968 + 163,456 + 2,050.
  albert_config albert;
  albert.vocabulary = 32000;
  albert.hidden = 1024;
  albert.layers = 24;
  albert.heads = 16;
  albert.intermediate = 4096;
  CHECK(parameter_count(*tensors_of(albert)) == 18'105'474);
  // LLaMA-7B and GPT-2 small, as their papers' code counts them.
  CHECK(parameter_count(*tensors_of(llama_config{})) == 6'738'415'616);
  CHECK(parameter_count(*tensors_of(gpt2_config{})) == 124'439'808);
  // BLOOM-560m, as its page counts it.
  bloom_config bloom;
  bloom.hidden = 1024;
  bloom.layers = 24;
  bloom.heads = 16;
  CHECK(parameter_count(*tensors_of(bloom)) == 559'214'592);
}

TEST_CASE("config.json: a written config reads back equal") {
  albert_config albert;
  albert.groups = 2;
  albert.activation = "gelu";
  llama_config llama;
  llama.kv_heads = 4;
  llama.tied = true;
  gpt2_config gpt2;
  gpt2.intermediate = 5;
  bloom_config bloom;
  bloom.heads = 4;
  for (const model_config& config :
       {model_config(albert), model_config(llama), model_config(gpt2), model_config(bloom)}) {
    const auto read = parse_model_config(model_config_json(config), "c");
    REQUIRE_MESSAGE(read.ok(), read.error());
    CHECK(*read == config);
  }
  CHECK(model_type(gpt2) == "gpt2");
  // GPT-2's inner width follows the outer one.
  const auto small = parse_model_config(R"({"model_type":"gpt2","n_embd":24,"n_inner":null})", "c");
  REQUIRE(small.ok());
  CHECK(std::get<gpt2_config>(*small).intermediate == 96);
}

TEST_CASE("config.json: what Shoal does not know is refused by its name") {
  CHECK(error_of("{").starts_with("model: 'config.json' cannot be understood ("));
  CHECK(error_of("[]") ==
        "model: 'config.json' is no config.json of a model: it has no model_type");
  CHECK(
      error_of(R"({"model_type":"bert"})") ==
      "model: 'config.json' has the model_type 'bert'; Shoal knows albert, llama, gpt2 and bloom");
  CHECK(error_of(R"({"model_type":"albert","hidden_size":10,"num_attention_heads":3})") ==
        "model: 'config.json' has hidden_size 10, which its 3 num_attention_heads do not divide");
  CHECK(error_of(R"({"model_type":"albert","hidden_size":0})") ==
        "model: 'config.json' has hidden_size 0; a size is at least 1");
  CHECK(error_of(R"({"model_type":"albert","hidden_act":"swish"})") ==
        "model: 'config.json' has the activation 'swish', which Shoal does not know");
  CHECK(error_of(R"({"model_type":"llama","attention_bias":true})") ==
        "model: 'config.json' has attention_bias other than false, which is not supported");
  CHECK(error_of(R"({"model_type":"llama","rope_scaling":{"type":"linear"}})") ==
        "model: 'config.json' has rope_scaling, which is not supported");
  CHECK(error_of(R"({"model_type":"gpt2","n_layer":1.5})").find("no whole number") !=
        std::string::npos);
  const auto deep = parse_model_config(R"({"model_type":"gpt2","n_layer":2147483648})", "c");
  REQUIRE(deep.ok());
  CHECK(tensors_of(*deep).error() == "the model has 2147483648 layers; at most 4096 are supported");
}

TEST_CASE("config.json: the tensors of the published files are those that the config lists") {
  SHOAL_NEEDS_DATA(albert, "oracle_vectors/albert_tiny/config.json");
  SHOAL_NEEDS_DATA(llama, "stories260K/hf/config.json");
  const auto tiny = load_model_config(albert);
  REQUIRE_MESSAGE(tiny.ok(), tiny.error());
  CHECK(parameter_count(*tensors_of(*tiny)) == 2846);
  auto file = safetensors::open(albert.parent_path() / "model.safetensors");
  REQUIRE_MESSAGE(file.ok(), file.error());
  agrees(*tiny, *file);
  const auto stories = load_model_config(llama);
  REQUIRE_MESSAGE(stories.ok(), stories.error());
  CHECK(parameter_count(*tensors_of(*stories)) == 260'032);
  file = safetensors::open(llama.parent_path() / "model.safetensors");
  REQUIRE_MESSAGE(file.ok(), file.error());
  agrees(*stories, *file);
}
