#include "kernels/learn/formats/model_config.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/whole_number.hpp"
#include "kernels/learn/formats/json_words.hpp"
#include "kernels/learn/formats/whole_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace shoal::learn {

namespace {

using ordered_json = nlohmann::ordered_json;
using hugging_face::albert_config;
using hugging_face::bloom_config;
using hugging_face::gpt2_config;
using hugging_face::llama_config;

constexpr std::int64_t largest = std::int64_t{1} << 31;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 24;

std::string shown(std::string_view text) {
  std::string out(text.substr(0, 60));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  return out;
}

/// Takes keys of one file. The first error stays in `why`. Throws json::exception for a value of
/// another type.
class keys {
public:
  explicit keys(const ordered_json& file) : file_(file) {}
  std::string why;

  void refuse(const std::string& reason) {
    if (why.empty()) why = reason;
  }
  bool has(const char* key) const {
    const auto found = file_.find(key);
    return found != file_.end() && !found->is_null();
  }
  void size(const char* key, std::int64_t& to) {
    if (has(key)) to = whole_number<std::int64_t>(file_.at(key));
    if (to <= 0 || to > largest)
      refuse("has " + std::string(key) + " " + std::to_string(to) + "; a size is at least 1");
  }
  void token(const char* key, std::int64_t& to) {
    // Later models have a list of ends. Its first one counts.
    if (!has(key)) return;
    const auto& value = file_.at(key);
    to = whole_number<std::int64_t>(value.is_array() && !value.empty() ? value.front() : value);
  }
  void real(const char* key, double& to) {
    if (!has(key)) return;
    if (!file_.at(key).is_number()) return refuse("has " + std::string(key) + " that is no number");
    to = file_.at(key).get<double>();
    if (!std::isfinite(to) || to < 0)
      refuse("has " + std::string(key) + " that is not finite or below 0");
  }
  void text(const char* key, std::string& to) {
    if (has(key)) to = file_.at(key).get_ref<const std::string&>();
  }
  void flag(const char* key, bool& to) {
    if (has(key)) to = file_.at(key).get_ref<const bool&>();
  }
  /// Refuses a key with another value than the one that Shoal's model has.
  void only(const char* key, const ordered_json& value) {
    if (has(key) && file_.at(key) != value)
      refuse("has " + std::string(key) + " other than " + json_text(value) +
             ", which is not supported");
  }
  void divides(const char* heads, std::int64_t count, const char* width, std::int64_t size) {
    if (count > 0 && size % count != 0)
      refuse("has " + std::string(width) + " " + std::to_string(size) + ", which its " +
             std::to_string(count) + " " + heads + " do not divide");
  }
  void activation(const char* key, std::string& to, std::initializer_list<const char*> known) {
    text(key, to);
    if (std::find(known.begin(), known.end(), to) == known.end())
      refuse("has the activation '" + shown(to) + "', which Shoal does not know");
  }

private:
  const ordered_json& file_;
};

albert_config albert_of(keys& from) {
  albert_config out;
  from.size("vocab_size", out.vocabulary);
  from.size("embedding_size", out.embedding);
  from.size("hidden_size", out.hidden);
  from.size("num_hidden_layers", out.layers);
  from.size("num_hidden_groups", out.groups);
  from.size("inner_group_num", out.layers_in_group);
  from.size("num_attention_heads", out.heads);
  from.size("intermediate_size", out.intermediate);
  from.size("max_position_embeddings", out.positions);
  from.size("type_vocab_size", out.types);
  from.activation("hidden_act", out.activation, {"gelu_new", "gelu", "relu"});
  from.real("layer_norm_eps", out.norm_epsilon);
  from.real("initializer_range", out.initializer_range);
  from.real("hidden_dropout_prob", out.hidden_dropout);
  from.real("attention_probs_dropout_prob", out.attention_dropout);
  from.real("classifier_dropout_prob", out.classifier_dropout);
  from.token("pad_token_id", out.pad);
  from.token("bos_token_id", out.bos);
  from.token("eos_token_id", out.eos);
  from.only("position_embedding_type", "absolute");
  from.divides("num_attention_heads", out.heads, "hidden_size", out.hidden);
  if (out.groups > out.layers) from.refuse("has more num_hidden_groups than num_hidden_layers");
  return out;
}

llama_config llama_of(keys& from) {
  llama_config out;
  from.size("vocab_size", out.vocabulary);
  from.size("hidden_size", out.hidden);
  from.size("intermediate_size", out.intermediate);
  from.size("num_hidden_layers", out.layers);
  from.size("num_attention_heads", out.heads);
  out.kv_heads = out.heads;
  from.size("num_key_value_heads", out.kv_heads);
  from.size("max_position_embeddings", out.positions);
  from.activation("hidden_act", out.activation, {"silu"});
  from.real("rms_norm_eps", out.norm_epsilon);
  from.real("rope_theta", out.rope_theta);
  from.real("initializer_range", out.initializer_range);
  from.token("bos_token_id", out.bos);
  from.token("eos_token_id", out.eos);
  from.flag("tie_word_embeddings", out.tied);
  from.only("attention_bias", false);
  from.only("mlp_bias", false);
  if (from.has("rope_scaling")) from.refuse("has rope_scaling, which is not supported");
  from.divides("num_attention_heads", out.heads, "hidden_size", out.hidden);
  from.divides("num_key_value_heads", out.kv_heads, "num_attention_heads", out.heads);
  return out;
}

gpt2_config gpt2_of(keys& from) {
  gpt2_config out;
  from.size("vocab_size", out.vocabulary);
  from.size("n_embd", out.hidden);
  from.size("n_layer", out.layers);
  from.size("n_head", out.heads);
  out.intermediate = out.hidden <= largest ? 4 * out.hidden : out.hidden;
  if (from.has("n_inner")) from.size("n_inner", out.intermediate);
  from.size("n_positions", out.positions);
  from.activation("activation_function", out.activation, {"gelu_new", "gelu", "relu"});
  from.real("layer_norm_epsilon", out.norm_epsilon);
  from.real("initializer_range", out.initializer_range);
  from.token("bos_token_id", out.bos);
  from.token("eos_token_id", out.eos);
  from.only("scale_attn_weights", true);
  from.only("scale_attn_by_inverse_layer_idx", false);
  from.only("tie_word_embeddings", true);
  from.divides("n_head", out.heads, "n_embd", out.hidden);
  return out;
}

bloom_config bloom_of(keys& from) {
  bloom_config out;
  from.size("vocab_size", out.vocabulary);
  // Older files have other names.
  from.size(from.has("n_embed") ? "n_embed" : "hidden_size", out.hidden);
  from.size(from.has("num_hidden_layers") ? "num_hidden_layers" : "n_layer", out.layers);
  from.size(from.has("num_attention_heads") ? "num_attention_heads" : "n_head", out.heads);
  from.size("seq_length", out.positions);
  from.real("layer_norm_epsilon", out.norm_epsilon);
  from.real("initializer_range", out.initializer_range);
  from.token("bos_token_id", out.bos);
  from.token("eos_token_id", out.eos);
  from.token("pad_token_id", out.pad);
  from.only("apply_residual_connection_post_layernorm", false);
  from.only("tie_word_embeddings", true);
  from.divides("n_head", out.heads, "hidden_size", out.hidden);
  return out;
}

ordered_json json_of(const albert_config& c) {
  return {{"architectures", {"AlbertForPreTraining"}},
          {"model_type", "albert"},
          {"vocab_size", c.vocabulary},
          {"embedding_size", c.embedding},
          {"hidden_size", c.hidden},
          {"num_hidden_layers", c.layers},
          {"num_hidden_groups", c.groups},
          {"inner_group_num", c.layers_in_group},
          {"num_attention_heads", c.heads},
          {"intermediate_size", c.intermediate},
          {"hidden_act", c.activation},
          {"max_position_embeddings", c.positions},
          {"type_vocab_size", c.types},
          {"layer_norm_eps", c.norm_epsilon},
          {"initializer_range", c.initializer_range},
          {"hidden_dropout_prob", c.hidden_dropout},
          {"attention_probs_dropout_prob", c.attention_dropout},
          {"classifier_dropout_prob", c.classifier_dropout},
          {"pad_token_id", c.pad},
          {"bos_token_id", c.bos},
          {"eos_token_id", c.eos},
          {"torch_dtype", "float32"}};
}

ordered_json json_of(const llama_config& c) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", c.vocabulary},
          {"hidden_size", c.hidden},
          {"intermediate_size", c.intermediate},
          {"num_hidden_layers", c.layers},
          {"num_attention_heads", c.heads},
          {"num_key_value_heads", c.kv_heads},
          {"hidden_act", c.activation},
          {"max_position_embeddings", c.positions},
          {"rms_norm_eps", c.norm_epsilon},
          {"rope_theta", c.rope_theta},
          {"initializer_range", c.initializer_range},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", c.tied},
          {"bos_token_id", c.bos},
          {"eos_token_id", c.eos},
          {"torch_dtype", "float32"}};
}

ordered_json json_of(const gpt2_config& c) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", c.vocabulary},
          {"n_embd", c.hidden},
          {"n_layer", c.layers},
          {"n_head", c.heads},
          {"n_inner", c.intermediate},
          {"n_positions", c.positions},
          {"activation_function", c.activation},
          {"layer_norm_epsilon", c.norm_epsilon},
          {"initializer_range", c.initializer_range},
          {"bos_token_id", c.bos},
          {"eos_token_id", c.eos},
          {"torch_dtype", "float32"}};
}

ordered_json json_of(const bloom_config& c) {
  return {{"architectures", {"BloomForCausalLM"}},
          {"model_type", "bloom"},
          {"vocab_size", c.vocabulary},
          {"hidden_size", c.hidden},
          {"n_layer", c.layers},
          {"n_head", c.heads},
          {"seq_length", c.positions},
          {"layer_norm_epsilon", c.norm_epsilon},
          {"initializer_range", c.initializer_range},
          {"bos_token_id", c.bos},
          {"eos_token_id", c.eos},
          {"pad_token_id", c.pad},
          {"torch_dtype", "float32"}};
}

using shapes = std::vector<tensor_shape>;

void add_linear(shapes& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.push_back({name + ".weight", {out, in}});
  to.push_back({name + ".bias", {out}});
}
void add_norm(shapes& to, const std::string& name, std::int64_t width) {
  to.push_back({name + ".weight", {width}});
  to.push_back({name + ".bias", {width}});
}

shapes shapes_of(const albert_config& c) {
  shapes out;
  const std::string embeddings = "albert.embeddings.";
  out.push_back({embeddings + "word_embeddings.weight", {c.vocabulary, c.embedding}});
  out.push_back({embeddings + "position_embeddings.weight", {c.positions, c.embedding}});
  out.push_back({embeddings + "token_type_embeddings.weight", {c.types, c.embedding}});
  add_norm(out, embeddings + "LayerNorm", c.embedding);
  add_linear(out, "albert.encoder.embedding_hidden_mapping_in", c.hidden, c.embedding);
  for (std::int64_t group = 0; group < c.groups; ++group)
    for (std::int64_t inner = 0; inner < c.layers_in_group; ++inner) {
      const auto layer = "albert.encoder.albert_layer_groups." + std::to_string(group) +
                         ".albert_layers." + std::to_string(inner) + ".";
      add_norm(out, layer + "full_layer_layer_norm", c.hidden);
      for (const char* part : {"query", "key", "value", "dense"})
        add_linear(out, layer + "attention." + part, c.hidden, c.hidden);
      add_norm(out, layer + "attention.LayerNorm", c.hidden);
      add_linear(out, layer + "ffn", c.intermediate, c.hidden);
      add_linear(out, layer + "ffn_output", c.hidden, c.intermediate);
    }
  add_linear(out, "albert.pooler", c.hidden, c.hidden);
  out.push_back({"predictions.bias", {c.vocabulary}});
  add_norm(out, "predictions.LayerNorm", c.embedding);
  add_linear(out, "predictions.dense", c.embedding, c.hidden);
  add_linear(out, "sop_classifier.classifier", 2, c.hidden);
  return out;
}

shapes shapes_of(const llama_config& c) {
  shapes out{{"model.embed_tokens.weight", {c.vocabulary, c.hidden}}};
  const auto kv = c.hidden / c.heads * c.kv_heads;
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const auto layer = "model.layers." + std::to_string(i) + ".";
    const auto add = [&](const char* name, std::vector<std::int64_t> shape) {
      out.push_back({layer + name + ".weight", std::move(shape)});
    };
    add("input_layernorm", {c.hidden});
    add("self_attn.q_proj", {c.hidden, c.hidden});
    add("self_attn.k_proj", {kv, c.hidden});
    add("self_attn.v_proj", {kv, c.hidden});
    add("self_attn.o_proj", {c.hidden, c.hidden});
    add("post_attention_layernorm", {c.hidden});
    add("mlp.gate_proj", {c.intermediate, c.hidden});
    add("mlp.down_proj", {c.hidden, c.intermediate});
    add("mlp.up_proj", {c.intermediate, c.hidden});
  }
  out.push_back({"model.norm.weight", {c.hidden}});
  if (!c.tied) out.push_back({"lm_head.weight", {c.vocabulary, c.hidden}});
  return out;
}

shapes shapes_of(const gpt2_config& c) {
  shapes out{{"transformer.wte.weight", {c.vocabulary, c.hidden}},
             {"transformer.wpe.weight", {c.positions, c.hidden}}};
  const auto add_turned = [&](const std::string& name, std::int64_t in, std::int64_t to) {
    out.push_back({name + ".weight", {in, to}});
    out.push_back({name + ".bias", {to}});
  };
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const auto layer = "transformer.h." + std::to_string(i) + ".";
    add_norm(out, layer + "ln_1", c.hidden);
    add_turned(layer + "attn.c_attn", c.hidden, 3 * c.hidden);
    add_turned(layer + "attn.c_proj", c.hidden, c.hidden);
    add_norm(out, layer + "ln_2", c.hidden);
    add_turned(layer + "mlp.c_fc", c.hidden, c.intermediate);
    add_turned(layer + "mlp.c_proj", c.intermediate, c.hidden);
  }
  add_norm(out, "transformer.ln_f", c.hidden);
  return out;
}

shapes shapes_of(const bloom_config& c) {
  shapes out{{"transformer.word_embeddings.weight", {c.vocabulary, c.hidden}}};
  add_norm(out, "transformer.word_embeddings_layernorm", c.hidden);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const auto layer = "transformer.h." + std::to_string(i) + ".";
    add_norm(out, layer + "input_layernorm", c.hidden);
    add_linear(out, layer + "self_attention.query_key_value", 3 * c.hidden, c.hidden);
    add_linear(out, layer + "self_attention.dense", c.hidden, c.hidden);
    add_norm(out, layer + "post_attention_layernorm", c.hidden);
    add_linear(out, layer + "mlp.dense_h_to_4h", 4 * c.hidden, c.hidden);
    add_linear(out, layer + "mlp.dense_4h_to_h", c.hidden, 4 * c.hidden);
  }
  add_norm(out, "transformer.ln_f", c.hidden);
  return out;
}

/// The tensors that are listed for each layer, at most.
constexpr std::int64_t most_in_layer = 16, most_layers = 1 << 12;

std::int64_t layers_listed(const albert_config& c) {
  return c.groups * c.layers_in_group;
}
std::int64_t layers_listed(const llama_config& c) {
  return c.layers;
}
std::int64_t layers_listed(const gpt2_config& c) {
  return c.layers;
}
std::int64_t layers_listed(const bloom_config& c) {
  return c.layers;
}

} // namespace

result<model_config> parse_model_config(std::string_view text, const std::string& name) {
  const auto refused = [&](const std::string& why) -> result<model_config> {
    return failure{"model: '" + name + "' " + why};
  };
  try {
    const auto file = parse_json<ordered_json>(text);
    if (!file.is_object() || !file.contains("model_type"))
      return refused("is no config.json of a model: it has no model_type");
    const auto& type = file.at("model_type").get_ref<const std::string&>();
    keys from(file);
    model_config out;
    if (type == "albert")
      out = albert_of(from);
    else if (type == "llama")
      out = llama_of(from);
    else if (type == "gpt2")
      out = gpt2_of(from);
    else if (type == "bloom")
      out = bloom_of(from);
    else
      return refused("has the model_type '" + shown(type) +
                     "'; Shoal knows albert, llama, gpt2 and bloom");
    if (!from.why.empty()) return refused(from.why);
    return out;
  } catch (const ordered_json::exception& error) {
    return refused("cannot be understood (" + shown(json_words(error.what())) +
                   "); take another file");
  }
}

result<model_config> load_model_config(const std::filesystem::path& path) {
  const auto text = read_whole_file(path, most_bytes, "model");
  if (!text) return failure{text.error()};
  return parse_model_config(*text, path.string());
}

std::string model_config_json(const model_config& config) {
  return json_text(std::visit([](const auto& c) { return json_of(c); }, config), 2) + "\n";
}

std::string_view model_type(const model_config& config) {
  static constexpr std::string_view names[] = {"albert", "llama", "gpt2", "bloom"};
  return names[config.index()];
}

std::pair<std::int64_t, std::int64_t> ends_of_text(const model_config& config) {
  return std::visit([](const auto& c) { return std::pair{c.bos, c.eos}; }, config);
}

result<std::vector<tensor_shape>> tensors_of(const model_config& config) {
  const auto layers = std::visit([](const auto& c) { return layers_listed(c); }, config);
  if (layers > most_layers)
    return failure{"the model has " + std::to_string(layers) + " layers; at most " +
                   std::to_string(most_layers) + " are supported"};
  static_assert(most_in_layer * most_layers <= 1 << 16);
  return std::visit([](const auto& c) { return shapes_of(c); }, config);
}

std::int64_t parameter_count(const std::vector<tensor_shape>& tensors) {
  std::int64_t sum = 0;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  for (const auto& tensor : tensors) {
    std::int64_t size = 1;
    for (const auto extent : tensor.shape)
      if (__builtin_mul_overflow(size, extent, &size)) return most;
    if (__builtin_add_overflow(sum, size, &sum)) return most;
  }
  return sum;
}

} // namespace shoal::learn
