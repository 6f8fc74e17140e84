#include "kernels/learn/decoder.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/argument_check.hpp"
#include "kernels/learn/decoder_block.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace shoal::learn {

namespace {

using slots = std::vector<kernels::tensor_slot>;

bool fused(const decoder_config& config) {
  return config.mlp != mlp_kind::swiglu && config.kv_heads == config.heads;
}

std::size_t tensors_of_embedding(const decoder_config& config) {
  return 1 + (config.positions == position_kind::learned ? 1 : 0) +
         (config.embedding_norm ? config.biases ? 2 : 1 : 0);
}

std::size_t tensors_of_layer(const decoder_config& config) {
  if (config.biases) return 12;
  return (fused(config) ? 5 : 7) + (config.mlp == mlp_kind::swiglu ? 2 : 1);
}

double log_sum(const float* logits, std::size_t n) {
  const auto most = static_cast<double>(*std::max_element(logits, logits + n));
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(logits[i]) - most);
  return most + std::log(sum);
}

} // namespace

result<void> validate(const decoder_config& config) {
  struct bound {
    const char* name;
    std::int64_t value, most;
  };
  for (const bound& b :
       {bound{"layers", config.layers, 1024}, bound{"heads", config.heads, 1024},
        bound{"kv_heads", config.kv_heads, 1024}, bound{"dim", config.dim, 65536},
        bound{"hidden", config.hidden, 1 << 20}, bound{"context", config.context, 1 << 20},
        bound{"vocabulary", config.vocabulary, std::int64_t{1} << 24}})
    if (b.value < 1 || b.value > b.most)
      return failure{"model: " + std::string(b.name) + " is " + std::to_string(b.value) +
                     "; it must be from 1 to " + std::to_string(b.most)};
  if (config.dim % config.heads != 0)
    return failure{"model: dim " + std::to_string(config.dim) + " is not a multiple of " +
                   std::to_string(config.heads) + " heads"};
  if (config.positions == position_kind::rotary && config.dim % (2 * config.heads) != 0)
    return failure{"model: dim " + std::to_string(config.dim) +
                   " is not a multiple of 2 * heads = " + std::to_string(2 * config.heads) +
                   ", which rotary positions need"};
  if (config.heads % config.kv_heads != 0)
    return failure{"model: " + std::to_string(config.heads) + " heads cannot share " +
                   std::to_string(config.kv_heads) + " kv_heads equally"};
  if (config.biases && !fused(config))
    return failure{"model: biases need an mlp without gate, and as many kv_heads as heads"};
  if (!(config.epsilon > 0 && config.epsilon < 1) || !(config.rotary_base > 1))
    return failure{"model: the epsilon of the norm must be in (0, 1), and rotary_base above 1"};
  return {};
}

decoder_config decoder_of(const kernels::transformer_config& config) {
  decoder_config out;
  out.layers = config.layers;
  out.heads = out.kv_heads = config.heads;
  out.dim = config.dim;
  out.hidden = 4 * config.dim;
  out.context = config.context;
  out.vocabulary = config.vocabulary;
  out.norm = norm_kind::layer;
  out.mlp = mlp_kind::gelu;
  out.rotary = rotary_pairs::halves;
  return out;
}

slots layout_of(const decoder_config& config) {
  SHOAL_CHECK(validate(config).ok(), "the model's sizes are validated where they are read");
  slots out;
  const auto d = config.dim, kv = d / config.heads * config.kv_heads;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    out.push_back({name, 0, std::move(shape)});
  };
  // A tensor, and the bias of its rows.
  const auto add_both = [&](const std::string& name, std::vector<std::int64_t> shape) {
    const auto rows = shape.front();
    add(name, std::move(shape));
    if (config.biases) add(name + "_bias", {rows});
  };
  add("embedding", {config.vocabulary, d});
  if (config.positions == position_kind::learned) add("position_embedding", {config.context, d});
  if (config.embedding_norm) add_both("embedding_norm", {d});
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const auto prefix = "layer" + std::to_string(i) + ".";
    add_both(prefix + "attention_norm", {d});
    if (fused(config)) {
      add_both(prefix + "attention_qkv", {3 * d, d});
    } else {
      add(prefix + "attention_q", {d, d});
      add(prefix + "attention_k", {kv, d});
      add(prefix + "attention_v", {kv, d});
    }
    add_both(prefix + "attention_out", {d, d});
    add_both(prefix + "mlp_norm", {d});
    if (config.mlp == mlp_kind::swiglu) add(prefix + "mlp_gate", {config.hidden, d});
    add_both(prefix + "mlp_up", {config.hidden, d});
    add_both(prefix + "mlp_down", {d, config.hidden});
  }
  add_both("final_norm", {d});
  if (!config.tied) add("output", {config.vocabulary, d});
  return without_gaps(std::move(out));
}

namespace {

/// The final norm and the output matrix, packed.
struct head_weights {
  head_weights(const layer_sizes& sizes, const decoder_config& config, std::span<const float> head)
      : vocabulary(static_cast<std::size_t>(config.vocabulary)) {
    const auto matrix = vocabulary * sizes.dim;
    // Tied: embedding, final_norm. Untied: final_norm, output.
    gain_at = config.tied ? matrix : 0;
    output_at = config.tied ? 0 : sizes.dim * (config.biases ? 2 : 1);
    const auto vector = [&](std::size_t at) {
      const auto from = head.begin() + static_cast<std::ptrdiff_t>(at);
      return std::vector<float>(from, from + static_cast<std::ptrdiff_t>(sizes.dim));
    };
    norm.gain = vector(gain_at);
    if (config.biases) norm.bias = vector(gain_at + sizes.dim);
    output = weight_matrix(head.subspan(output_at, matrix), vocabulary, sizes.dim);
  }
  std::vector<float> normed(const layer_sizes& sizes, const float* x, std::size_t rows) const {
    std::vector<float> out(rows * sizes.dim);
    norm_rows(sizes, norm, x, rows, out.data());
    return out;
  }
  std::vector<float> logits(const layer_sizes& sizes, const float* x, std::size_t rows) const {
    std::vector<float> out(rows * vocabulary);
    output.multiply(normed(sizes, x, rows).data(), rows, out.data());
    return out;
  }
  std::size_t vocabulary;
  std::size_t gain_at = 0, output_at = 0; // in the vector of the head
  norm_weights norm;
  weight_matrix output;
};

/// The tensors before the first layer.
struct embedding_weights {
  /// `all`: the parameters of embedding_tensors(); they outlive this.
  embedding_weights(const layer_sizes& sizes, const decoder_config& config,
                    std::span<const float> all)
      : dim(sizes.dim), words(all.first(static_cast<std::size_t>(config.vocabulary) * dim)) {
    auto rest = all.subspan(words.size());
    const auto take = [&](std::size_t n) {
      const auto out = rest.first(n);
      rest = rest.subspan(n);
      return out;
    };
    if (config.positions == position_kind::learned)
      positions = take(static_cast<std::size_t>(config.context) * dim);
    if (!config.embedding_norm) return;
    const auto gain = take(dim);
    norm.emplace().gain.assign(gain.begin(), gain.end());
    if (config.biases) norm->bias.assign(rest.begin(), rest.end());
  }
  /// The sums of the vectors of tokens and positions. position_of(i): of the i-th token.
  template <class Position>
  std::vector<float> sums(std::span<const token_id> tokens, Position position_of) const {
    std::vector<float> out(tokens.size() * dim);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      float* row = out.data() + i * dim;
      std::copy_n(words.data() + static_cast<std::size_t>(tokens[i]) * dim, dim, row);
      if (positions.empty()) continue;
      const float* added = positions.data() + position_of(i) * dim;
      for (std::size_t j = 0; j < dim; ++j) row[j] += added[j];
    }
    return out;
  }
  template <class Position>
  std::vector<float> rows(const layer_sizes& sizes, std::span<const token_id> tokens,
                          Position position_of) const {
    auto out = sums(tokens, position_of);
    if (!norm) return out;
    std::vector<float> normed(out.size());
    norm_rows(sizes, *norm, out.data(), tokens.size(), normed.data());
    return normed;
  }
  std::size_t dim;
  std::span<const float> words, positions;
  std::optional<norm_weights> norm;
};

} // namespace

class decoder_ends final : public served_ends {
public:
  decoder_ends(std::shared_ptr<const decoder_facts> facts, std::span<const float> embedding,
               std::span<const float> head)
      : f_(std::move(facts)), values_(embedding.begin(), embedding.end()),
        embedding_(f_->sizes, f_->config, values_), head_(f_->sizes, f_->config, head) {}

  std::size_t vocabulary() const noexcept override { return head_.vocabulary; }
  std::size_t width() const noexcept override { return f_->sizes.dim; }
  std::size_t context() const noexcept override { return f_->context(); }
  std::size_t layers() const noexcept override {
    return static_cast<std::size_t>(f_->config.layers);
  }

  result<std::vector<float>> embed(std::span<const token_id> tokens,
                                   std::size_t position) const override {
    if (const auto check = argument_check().tokens(tokens, f_->config.vocabulary); !check.ok())
      return check.why();
    if (!embedding_.positions.empty() &&
        (position > context() || tokens.size() > context() - position))
      return failure{"layers: the position " + std::to_string(position + tokens.size() - 1) +
                     " is outside the context of " + std::to_string(context())};
    return embedding_.rows(f_->sizes, tokens, [&](std::size_t i) { return position + i; });
  }
  result<std::vector<float>> logits(std::span<const float> in) const override {
    if (in.size() % width() != 0)
      return failure{"layers: the vector of activations has " + std::to_string(in.size()) +
                     " values; it needs a multiple of " + std::to_string(width())};
    return head_.logits(f_->sizes, in.data(), in.size() / width());
  }

private:
  std::shared_ptr<const decoder_facts> f_;
  std::vector<float> values_;
  embedding_weights embedding_;
  head_weights head_;
};

decoder::decoder(const decoder_config& config)
    : facts_(std::make_shared<const decoder_facts>(config)) {}
decoder::~decoder() = default;

const decoder_config& decoder::config() const noexcept {
  return facts_->config;
}
const slots& decoder::layout() const noexcept {
  return facts_->layout;
}
std::int64_t decoder::layers() const noexcept {
  return facts_->config.layers;
}
std::int64_t decoder::vocabulary() const noexcept {
  return facts_->config.vocabulary;
}
std::int64_t decoder::context() const noexcept {
  return facts_->config.context;
}
std::size_t decoder::width() const noexcept {
  return facts_->sizes.dim;
}

slots decoder::embedding_tensors() const {
  const auto& all = facts_->layout;
  return without_gaps({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(
                                                      tensors_of_embedding(facts_->config))});
}

result<slots> decoder::block_tensors(layer_range block) const {
  if (const auto check = argument_check().layers(block, layers()); !check.ok()) return check.why();
  const auto at = [&](std::int64_t layer) {
    return facts_->layout.begin() +
           static_cast<std::ptrdiff_t>(tensors_of_embedding(facts_->config)) +
           static_cast<std::ptrdiff_t>(tensors_of_layer(facts_->config)) * layer;
  };
  return without_gaps({at(block.first), at(block.last)});
}

slots decoder::head_tensors() const {
  const auto& all = facts_->layout;
  const auto& config = facts_->config;
  slots out;
  if (config.tied) out.push_back(all.front());
  out.insert(out.end(), all.end() - (1 + (config.biases ? 1 : 0) + (config.tied ? 0 : 1)),
             all.end());
  return without_gaps(std::move(out));
}

namespace {

argument_check fits(const decoder& model, layer_range block, std::span<const float> parameters) {
  auto check = argument_check().layers(block, model.layers());
  if (check.ok())
    check.size("vector of the block's parameters", parameters.size(),
               kernels::end_of(*model.block_tensors(block)));
  return check;
}

} // namespace

result<std::unique_ptr<const served_block>>
decoder::block(layer_range block, std::span<const float> parameters, weight_format format) const {
  if (const auto check = fits(*this, block, parameters); !check.ok()) return check.why();
  return std::unique_ptr<const served_block>(std::make_unique<const decoder_block>(
      facts_, static_cast<std::size_t>(block.last - block.first), parameters, format));
}

result<std::unique_ptr<const served_ends>> decoder::ends(std::span<const float> embedding,
                                                         std::span<const float> head) const {
  const auto check =
      argument_check()
          .size("embedding", embedding.size(), kernels::end_of(embedding_tensors()))
          .size("vector of the head's parameters", head.size(), kernels::end_of(head_tensors()));
  if (!check.ok()) return check.why();
  return std::unique_ptr<const served_ends>(
      std::make_unique<const decoder_ends>(facts_, embedding, head));
}

result<std::vector<float>> decoder::embed(std::span<const float> parameters, pass_shape shape,
                                          std::span<const token_id> tokens) const {
  const auto check = argument_check()
                         .range("samples", shape.samples, std::int64_t{1} << 24)
                         .range("time", shape.time, context())
                         .size("embedding", parameters.size(), kernels::end_of(embedding_tensors()))
                         .size("list of tokens", tokens.size(), shape.tokens())
                         .tokens(tokens, vocabulary());
  if (!check.ok()) return check.why();
  const embedding_weights weights(facts_->sizes, facts_->config, parameters);
  return weights.rows(facts_->sizes, tokens,
                      [&](std::size_t i) { return i % static_cast<std::size_t>(shape.time); });
}

result<void> decoder::embed_backward(std::span<const float> parameters, pass_shape shape,
                                     std::span<const token_id> tokens,
                                     std::span<const float> gradient_out,
                                     std::span<float> gradient_sum) const {
  if (const auto out = embed(parameters, shape, tokens); !out) return failure{out.error()};
  const auto check =
      argument_check()
          .size("gradient of the activations", gradient_out.size(), tokens.size() * width())
          .size("sum", gradient_sum.size(), parameters.size());
  if (!check.ok()) return check.why();
  const embedding_weights weights(facts_->sizes, facts_->config, parameters);
  const auto time = static_cast<std::size_t>(shape.time), rows = tokens.size();
  const auto position_of = [&](std::size_t i) { return i % time; };
  std::vector<float> d_rows(gradient_out.begin(), gradient_out.end());
  if (weights.norm) {
    float* gain = gradient_sum.data() + weights.words.size() + weights.positions.size();
    std::fill(d_rows.begin(), d_rows.end(), 0.F);
    norm_rows_back(facts_->sizes, *weights.norm, weights.sums(tokens, position_of).data(),
                   gradient_out.data(), rows, d_rows.data(), gain,
                   weights.norm->bias.empty() ? nullptr : gain + width());
  }
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < width(); ++j) {
      const float slope = d_rows[i * width() + j];
      gradient_sum[static_cast<std::size_t>(tokens[i]) * width() + j] += slope;
      if (!weights.positions.empty())
        gradient_sum[weights.words.size() + position_of(i) * width() + j] += slope;
    }
  return {};
}

result<std::vector<float>> decoder::forward(layer_range block, std::span<const float> parameters,
                                            pass_shape shape, std::span<const float> in) const {
  const auto made = this->block(block, parameters);
  if (!made) return failure{made.error()};
  return (*made)->forward(shape, in);
}

result<std::vector<float>> decoder::backward(layer_range block, std::span<const float> parameters,
                                             pass_shape shape, std::span<const float> in,
                                             std::span<const float> gradient_out,
                                             std::span<float> gradient_sum) const {
  auto check = fits(*this, block, parameters);
  if (check.ok()) check.size("sum", gradient_sum.size(), parameters.size());
  if (!check.ok()) return check.why();
  const decoder_block made(facts_, static_cast<std::size_t>(block.last - block.first), parameters,
                           weight_format::float32);
  return made.backward(shape, in, gradient_out, gradient_sum.data());
}

result<double> decoder::loss(std::span<const float> parameters, pass_shape shape,
                             std::span<const float> in, std::span<const token_id> targets) const {
  std::vector<float> unused(parameters.size());
  const auto both = loss_backward(parameters, shape, in, targets, unused);
  if (!both) return failure{both.error()};
  return both->loss;
}

result<head_gradient> decoder::loss_backward(std::span<const float> parameters, pass_shape shape,
                                             std::span<const float> in,
                                             std::span<const token_id> targets,
                                             std::span<float> gradient_sum) const {
  auto check = facts_->pass(shape, in);
  if (check.ok())
    check
        .size("vector of the head's parameters", parameters.size(), kernels::end_of(head_tensors()))
        .size("list of targets", targets.size(), shape.tokens())
        .tokens(targets, vocabulary())
        .size("sum", gradient_sum.size(), parameters.size());
  if (!check.ok()) return check.why();
  const auto& s = facts_->sizes;
  const head_weights head(s, facts_->config, parameters);
  const auto rows = shape.tokens(), words = head.vocabulary;
  const auto x = head.normed(s, in.data(), rows);
  auto slopes = head.logits(s, in.data(), rows);
  head_gradient out{0, std::vector<float>(in.size())};
  const double share = 1 / static_cast<double>(shape.time);
  for (std::size_t r = 0; r < rows; ++r) {
    float* row = slopes.data() + r * words;
    const auto target = static_cast<std::size_t>(targets[r]);
    const double sum = log_sum(row, words);
    out.loss += share * (sum - static_cast<double>(row[target]));
    for (std::size_t i = 0; i < words; ++i)
      row[i] = static_cast<float>(
          share * (std::exp(static_cast<double>(row[i]) - sum) - (i == target ? 1 : 0)));
  }
  float* gain = gradient_sum.data() + head.gain_at;
  float* output = gradient_sum.data() + head.output_at;
  std::vector<float> d_x(in.size());
  head.output.multiply_back(slopes.data(), rows, d_x.data());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < words; ++i)
      for (std::size_t j = 0; j < s.dim; ++j)
        output[i * s.dim + j] += slopes[r * words + i] * x[r * s.dim + j];
  norm_rows_back(s, head.norm, in.data(), d_x.data(), rows, out.gradient_in.data(), gain,
                 head.norm.bias.empty() ? nullptr : gain + s.dim);
  return out;
}

result<std::vector<float>> decoder::logits(std::span<const float> parameters, pass_shape shape,
                                           std::span<const float> in) const {
  auto check = facts_->pass(shape, in);
  if (check.ok())
    check.size("vector of the head's parameters", parameters.size(),
               kernels::end_of(head_tensors()));
  if (!check.ok()) return check.why();
  const auto& s = facts_->sizes;
  std::vector<float> last;
  for (std::int64_t i = 0; i < shape.samples; ++i) {
    const auto* row = in.data() + static_cast<std::size_t>((i + 1) * shape.time - 1) * s.dim;
    last.insert(last.end(), row, row + s.dim);
  }
  return head_weights(s, facts_->config, parameters)
      .logits(s, last.data(), static_cast<std::size_t>(shape.samples));
}

} // namespace shoal::learn
