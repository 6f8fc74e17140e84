#include "kernels/learn/decoder_math.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/portable_math.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace shoal::learn {

namespace {

float sigmoid(float x) {
  return x >= 0 ? 1 / (1 + exponential(-x)) : exponential(x) / (1 + exponential(x));
}

constexpr float half_root = std::numbers::sqrt2_v<float> / 2;

float gelu(float x) {
  return 0.5F * x * (1 + std::erf(x * half_root));
}

float gelu_slope(float x) {
  const float density =
      std::numbers::inv_sqrtpi_v<float> * half_root * exponential(std::max(-87.F, -x * x / 2));
  return 0.5F * (1 + std::erf(x * half_root)) + x * density;
}

/// sqrt(2 / pi) and the factor of the cube.
constexpr float tanh_scale = 2 * half_root * std::numbers::inv_sqrtpi_v<float>,
                tanh_cube = 0.044715F;

// 1 + tanh(u) = 2 sigmoid(2u).
float gelu_tanh(float x) {
  return x * sigmoid(2 * tanh_scale * (x + tanh_cube * x * x * x));
}

float gelu_tanh_slope(float x) {
  const float s = sigmoid(2 * tanh_scale * (x + tanh_cube * x * x * x));
  return s + x * s * (1 - s) * 2 * tanh_scale * (1 + 3 * tanh_cube * x * x);
}

float dot(const float* a, const float* b, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(float factor, const float* from, std::size_t n, float* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

void add_to_rows(std::span<const float> added, std::size_t rows, float* out) {
  for (std::size_t r = 0; r < rows && !added.empty(); ++r)
    add_scaled(1, added.data(), added.size(), out + r * added.size());
}

/// Adds the sum of the rows to `sum` unless that is null.
void sum_rows(const float* from, std::size_t width, std::size_t rows, float* sum) {
  for (std::size_t r = 0; r < rows && sum != nullptr; ++r)
    add_scaled(1, from + r * width, width, sum);
}

/// The mean and 1 / sqrt(mean square + epsilon) of a row, after its mean is taken off if the norm
/// does so.
struct moments {
  double mean = 0, inverse = 0;
};

moments moments_of(const layer_sizes& sizes, const float* x) {
  moments out;
  const auto n = static_cast<double>(sizes.dim);
  if (sizes.norm == norm_kind::layer) {
    for (std::size_t i = 0; i < sizes.dim; ++i) out.mean += static_cast<double>(x[i]);
    out.mean /= n;
  }
  double squares = 0;
  for (std::size_t i = 0; i < sizes.dim; ++i) {
    const double c = static_cast<double>(x[i]) - out.mean;
    squares += c * c;
  }
  out.inverse = 1 / std::sqrt(squares / n + sizes.epsilon);
  return out;
}

/// The probabilities p [position + 1] with which a query [head] of head `head` attends to the keys.
void attend(const layer_sizes& sizes, std::size_t head, const float* query, const float* keys,
            std::size_t position, float* p) {
  const float scale = 1 / std::sqrt(static_cast<float>(sizes.head));
  for (std::size_t t = 0; t <= position; ++t)
    p[t] = dot(query, keys + t * sizes.kv, sizes.head) * scale;
  for (std::size_t t = 0; t <= position && !sizes.slopes.empty(); ++t)
    p[t] -= sizes.slopes[head] * static_cast<float>(position - t);
  const float most = *std::max_element(p, p + position + 1);
  float sum = 0;
  for (std::size_t t = 0; t <= position; ++t) {
    p[t] = exponential(p[t] - most);
    sum += p[t];
  }
  for (std::size_t t = 0; t <= position; ++t) p[t] /= sum;
}

void activate(const layer_sizes& sizes, const float* gate, const float* up, std::size_t n,
              float* out) {
  if (sizes.gated())
    for (std::size_t i = 0; i < n; ++i) out[i] = gate[i] * sigmoid(gate[i]) * up[i];
  else if (sizes.mlp == mlp_kind::gelu_tanh)
    for (std::size_t i = 0; i < n; ++i) out[i] = gelu_tanh(up[i]);
  else
    for (std::size_t i = 0; i < n; ++i) out[i] = gelu(up[i]);
}

/// The slopes of ALiBi: 2^(-8 i / n) for head i = 1, ..., n, if n is a power of two. Otherwise
/// those of the next smaller power come first, and then every other one of the next larger power.
std::vector<float> alibi_slopes(std::size_t heads) {
  const auto below = std::bit_floor(heads);
  const auto slope = [](std::size_t i, std::size_t n) {
    return static_cast<float>(
        portable::pow(2, -8.0 * static_cast<double>(i) / static_cast<double>(n)));
  };
  std::vector<float> out;
  for (std::size_t i = 1; i <= below; ++i) out.push_back(slope(i, below));
  for (std::size_t i = 1; out.size() < heads; i += 2) out.push_back(slope(i, 2 * below));
  return out;
}

/// The parts of a layer's vector of parameters, in the order of the layout. Parts that the layer
/// lacks are null, and all are if `at` is.
template <class Pointer>
struct parameter_parts {
  parameter_parts(const layer_sizes& s, Pointer at) {
    const auto next = [&](std::size_t n) {
      Pointer here = at;
      if (at != nullptr) at += n;
      return here;
    };
    const auto bias = [&](std::size_t n) { return s.biases ? next(n) : nullptr; };
    attention_norm = next(s.dim);
    attention_norm_bias = bias(s.dim);
    q = next(s.dim * s.dim);
    k = next(s.kv * s.dim);
    v = next(s.kv * s.dim);
    q_bias = bias(s.dim);
    k_bias = bias(s.kv);
    v_bias = bias(s.kv);
    out = next(s.dim * s.dim);
    out_bias = bias(s.dim);
    mlp_norm = next(s.dim);
    mlp_norm_bias = bias(s.dim);
    gate = s.gated() ? next(s.hidden * s.dim) : nullptr;
    up = next(s.hidden * s.dim);
    up_bias = bias(s.hidden);
    down = next(s.dim * s.hidden);
    down_bias = bias(s.dim);
  }
  Pointer attention_norm, attention_norm_bias, q, k, v, q_bias, k_bias, v_bias, out, out_bias,
      mlp_norm, mlp_norm_bias, gate, up, up_bias, down, down_bias;
};

} // namespace

void add_outer(const float* gradient_out, std::size_t outputs, const float* in, std::size_t inputs,
               std::size_t rows, float* gradient) {
  for (std::size_t i = 0; i < outputs; ++i)
    for (std::size_t r = 0; r < rows; ++r)
      add_scaled(gradient_out[r * outputs + i], in + r * inputs, inputs, gradient + i * inputs);
}

float exponential(float x) noexcept {
  if (!(x > -87.F)) return std::isnan(x) ? x : 0.F;
  // exp(x) = 2^n exp(r), |r| <= ln 2 / 2, with ln 2 in two parts so that r is exact.
  constexpr float high = 0.693359375F, low = -2.12194440e-4F, magic = 12582912.F; // 1.5 * 2^23
  const float n = (x * std::numbers::log2e_v<float> + magic) - magic;
  const float r = (x - n * high) - n * low;
  const float p =
      1 +
      r * (1 + r * (1.F / 2 + r * (1.F / 6 + r * (1.F / 24 + r * (1.F / 120 + r * (1.F / 720))))));
  return p * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

rotary_table::rotary_table(const decoder_config& config) {
  if (config.positions != position_kind::rotary) return;
  const auto half = static_cast<std::size_t>(config.dim / config.heads / 2);
  const auto context = static_cast<std::size_t>(config.context);
  for (std::size_t position = 0; position < context; ++position)
    for (std::size_t i = 0; i < half; ++i) {
      const double frequency =
          portable::pow(config.rotary_base, -static_cast<double>(i) / static_cast<double>(half));
      const double turns = static_cast<double>(position) * frequency / (2 * std::numbers::pi);
      cosine.push_back(static_cast<float>(portable::cos_turns(turns)));
      sine.push_back(static_cast<float>(portable::sin_turns(turns)));
    }
}

layer_sizes::layer_sizes(const decoder_config& config)
    : dim(static_cast<std::size_t>(config.dim)), hidden(static_cast<std::size_t>(config.hidden)),
      heads(static_cast<std::size_t>(config.heads)),
      kv_heads(static_cast<std::size_t>(config.kv_heads)), head(dim / heads), kv(head * kv_heads),
      norm(config.norm), mlp(config.mlp), rotary(config.rotary),
      rotates(config.positions == position_kind::rotary), biases(config.biases),
      epsilon(config.epsilon) {
  if (config.positions == position_kind::alibi) slopes = alibi_slopes(heads);
}

void linear_weights::multiply(const float* in, std::size_t rows, float* out) const {
  matrix.multiply(in, rows, out);
  add_to_rows(bias, rows, out);
}

void linear_weights::multiply_add(const float* in, std::size_t rows, float* out) const {
  matrix.multiply_add(in, rows, out);
  add_to_rows(bias, rows, out);
}

layer_weights::layer_weights(const layer_sizes& s, std::span<const float> parameters,
                             weight_format format) {
  SHOAL_CHECK(parameters.size() == s.parameters(), "a layer has all of its parameters");
  const auto vector = [](const float* from, std::size_t n) {
    return from == nullptr ? std::vector<float>{} : std::vector<float>(from, from + n);
  };
  const auto pack = [&](const float* from, const float* bias, std::size_t outputs,
                        std::size_t inputs) {
    return linear_weights{weight_matrix({from, outputs * inputs}, outputs, inputs, format),
                          vector(bias, outputs)};
  };
  const parameter_parts<const float*> p(s, parameters.data());
  attention_norm = {vector(p.attention_norm, s.dim), vector(p.attention_norm_bias, s.dim)};
  mlp_norm = {vector(p.mlp_norm, s.dim), vector(p.mlp_norm_bias, s.dim)};
  q = pack(p.q, p.q_bias, s.dim, s.dim);
  k = pack(p.k, p.k_bias, s.kv, s.dim);
  v = pack(p.v, p.v_bias, s.kv, s.dim);
  out = pack(p.out, p.out_bias, s.dim, s.dim);
  if (s.gated()) gate = pack(p.gate, nullptr, s.hidden, s.dim);
  up = pack(p.up, p.up_bias, s.hidden, s.dim);
  down = pack(p.down, p.down_bias, s.dim, s.hidden);
}

std::size_t layer_weights::bytes() const noexcept {
  return (attention_norm.gain.size() + attention_norm.bias.size() + mlp_norm.gain.size() +
          mlp_norm.bias.size()) *
             sizeof(float) +
         q.bytes() + k.bytes() + v.bytes() + out.bytes() + gate.bytes() + up.bytes() + down.bytes();
}

void norm_rows(const layer_sizes& sizes, const norm_weights& weights, const float* x,
               std::size_t rows, float* out) {
  const float* gain = weights.gain.data();
  float* const first = out;
  for (std::size_t r = 0; r < rows; ++r, x += sizes.dim, out += sizes.dim) {
    const auto m = moments_of(sizes, x);
    for (std::size_t i = 0; i < sizes.dim; ++i)
      out[i] = gain[i] * static_cast<float>((static_cast<double>(x[i]) - m.mean) * m.inverse);
  }
  add_to_rows(weights.bias, rows, first);
}

void norm_rows_back(const layer_sizes& sizes, const norm_weights& weights, const float* x,
                    const float* gradient_out, std::size_t rows, float* gradient_x,
                    float* gradient_gain, float* gradient_bias) {
  const float* gain = weights.gain.data();
  sum_rows(gradient_out, sizes.dim, rows, gradient_bias);
  const auto n = static_cast<double>(sizes.dim);
  for (std::size_t r = 0; r < rows;
       ++r, x += sizes.dim, gradient_out += sizes.dim, gradient_x += sizes.dim) {
    const auto m = moments_of(sizes, x);
    const auto normal = [&](std::size_t i) {
      return (static_cast<double>(x[i]) - m.mean) * m.inverse;
    };
    double sum = 0, along = 0;
    for (std::size_t i = 0; i < sizes.dim; ++i) {
      const auto g = static_cast<double>(gain[i]) * static_cast<double>(gradient_out[i]);
      sum += g;
      along += g * normal(i);
      if (gradient_gain != nullptr)
        gradient_gain[i] += static_cast<float>(static_cast<double>(gradient_out[i]) * normal(i));
    }
    if (sizes.norm == norm_kind::root_mean_square) sum = 0;
    for (std::size_t i = 0; i < sizes.dim; ++i) {
      const auto g = static_cast<double>(gain[i]) * static_cast<double>(gradient_out[i]);
      gradient_x[i] += static_cast<float>(m.inverse * (g - sum / n - normal(i) * along / n));
    }
  }
}

void rotate(const layer_sizes& sizes, const rotary_table& table, std::size_t position,
            std::size_t heads, bool back, float* x) {
  if (!sizes.rotates) return;
  const auto half = sizes.head / 2;
  const float* cosine = table.cosine.data() + position * half;
  const float* sine = table.sine.data() + position * half;
  const bool interleaved = sizes.rotary == rotary_pairs::interleaved;
  for (std::size_t h = 0; h < heads; ++h, x += sizes.head)
    for (std::size_t i = 0; i < half; ++i) {
      float& a = x[interleaved ? 2 * i : i];
      float& b = x[interleaved ? 2 * i + 1 : i + half];
      const float s = back ? -sine[i] : sine[i];
      const float turned = a * cosine[i] - b * s;
      b = a * s + b * cosine[i];
      a = turned;
    }
}

void layer_forward(const layer_sizes& s, const rotary_table& table, const layer_weights& w,
                   std::size_t layer, std::span<const token_place> tokens, float* x) {
  const auto rows = tokens.size();
  std::vector<float> h(rows * s.dim), q(rows * s.dim), k(rows * s.kv), v(rows * s.kv),
      mixed(rows * s.dim);
  norm_rows(s, w.attention_norm, x, rows, h.data());
  w.q.multiply(h.data(), rows, q.data());
  w.k.multiply(h.data(), rows, k.data());
  w.v.multiply(h.data(), rows, v.data());
  std::size_t longest = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto& [cache, sample, position] = tokens[r];
    rotate(s, table, position, s.heads, false, q.data() + r * s.dim);
    rotate(s, table, position, s.kv_heads, false, k.data() + r * s.kv);
    std::copy_n(k.data() + r * s.kv, s.kv, cache->keys(layer, sample) + position * s.kv);
    std::copy_n(v.data() + r * s.kv, s.kv, cache->values(layer, sample) + position * s.kv);
    longest = std::max(longest, position + 1);
  }
  std::vector<float> p(longest);
  const auto group = s.heads / s.kv_heads;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto& [cache, sample, position] = tokens[r];
    for (std::size_t head = 0; head < s.heads; ++head) {
      const auto shared = head / group * s.head;
      attend(s, head, q.data() + r * s.dim + head * s.head, cache->keys(layer, sample) + shared,
             position, p.data());
      const float* values = cache->values(layer, sample) + shared;
      for (std::size_t t = 0; t <= position; ++t)
        add_scaled(p[t], values + t * s.kv, s.head, mixed.data() + r * s.dim + head * s.head);
    }
  }
  w.out.multiply_add(mixed.data(), rows, x);
  norm_rows(s, w.mlp_norm, x, rows, h.data());
  std::vector<float> gate(s.gated() ? rows * s.hidden : 0), up(rows * s.hidden);
  if (s.gated()) w.gate.multiply(h.data(), rows, gate.data());
  w.up.multiply(h.data(), rows, up.data());
  activate(s, gate.data(), up.data(), up.size(), up.data());
  w.down.multiply_add(up.data(), rows, x);
}

void layer_backward(const layer_sizes& s, const rotary_table& table, const layer_weights& w,
                    pass_shape shape, const float* x, float* gradient, float* gradient_parameters) {
  const auto rows = shape.tokens(), time = static_cast<std::size_t>(shape.time);
  std::vector<float> h(rows * s.dim), q(rows * s.dim), k(rows * s.kv), v(rows * s.kv),
      mixed(rows * s.dim), middle(x, x + rows * s.dim);
  norm_rows(s, w.attention_norm, x, rows, h.data());
  w.q.multiply(h.data(), rows, q.data());
  w.k.multiply(h.data(), rows, k.data());
  w.v.multiply(h.data(), rows, v.data());
  for (std::size_t r = 0; r < rows; ++r) {
    rotate(s, table, r % time, s.heads, false, q.data() + r * s.dim);
    rotate(s, table, r % time, s.kv_heads, false, k.data() + r * s.kv);
  }
  const auto group = s.heads / s.kv_heads;
  std::vector<float> p(time);
  /// Calls use(row, offset of the head's query, first row of its sequence, offset of its keys).
  const auto each_query = [&](auto use) {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t head = 0; head < s.heads; ++head) {
        const auto query = r * s.dim + head * s.head;
        const auto keys = (r / time * time) * s.kv + head / group * s.head;
        attend(s, head, q.data() + query, k.data() + keys, r % time, p.data());
        use(r % time, query, keys);
      }
  };
  each_query([&](std::size_t position, std::size_t query, std::size_t keys) {
    for (std::size_t t = 0; t <= position; ++t)
      add_scaled(p[t], v.data() + keys + t * s.kv, s.head, mixed.data() + query);
  });
  w.out.multiply_add(mixed.data(), rows, middle.data());
  std::vector<float> h2(rows * s.dim), gate(s.gated() ? rows * s.hidden : 0), up(rows * s.hidden),
      active(rows * s.hidden);
  norm_rows(s, w.mlp_norm, middle.data(), rows, h2.data());
  if (s.gated()) w.gate.multiply(h2.data(), rows, gate.data());
  w.up.multiply(h2.data(), rows, up.data());
  activate(s, gate.data(), up.data(), up.size(), active.data());

  const parameter_parts<float*> d(s, gradient_parameters);
  const bool all = gradient_parameters != nullptr;
  // The mlp.
  std::vector<float> d_up(rows * s.hidden), d_gate(gate.size()), d_h(rows * s.dim);
  w.down.multiply_back(gradient, rows, d_up.data());
  if (all) add_outer(gradient, s.dim, active.data(), s.hidden, rows, d.down);
  for (std::size_t i = 0; i < d_up.size(); ++i)
    if (s.gated()) {
      const float sigma = sigmoid(gate[i]), silu = gate[i] * sigma;
      d_gate[i] = d_up[i] * up[i] * sigma * (1 + gate[i] * (1 - sigma));
      d_up[i] *= silu;
    } else {
      d_up[i] *= s.mlp == mlp_kind::gelu_tanh ? gelu_tanh_slope(up[i]) : gelu_slope(up[i]);
    }
  sum_rows(gradient, s.dim, rows, d.down_bias);
  sum_rows(d_up.data(), s.hidden, rows, d.up_bias);
  w.up.multiply_back(d_up.data(), rows, d_h.data());
  if (s.gated()) w.gate.multiply_back(d_gate.data(), rows, d_h.data());
  if (all) {
    add_outer(d_up.data(), s.hidden, h2.data(), s.dim, rows, d.up);
    if (s.gated()) add_outer(d_gate.data(), s.hidden, h2.data(), s.dim, rows, d.gate);
  }
  norm_rows_back(s, w.mlp_norm, middle.data(), d_h.data(), rows, gradient, d.mlp_norm,
                 d.mlp_norm_bias);

  // The attention.
  std::vector<float> d_mixed(rows * s.dim), d_q(rows * s.dim), d_k(rows * s.kv), d_v(rows * s.kv),
      d_p(time);
  sum_rows(gradient, s.dim, rows, d.out_bias);
  w.out.multiply_back(gradient, rows, d_mixed.data());
  if (all) add_outer(gradient, s.dim, mixed.data(), s.dim, rows, d.out);
  const float scale = 1 / std::sqrt(static_cast<float>(s.head));
  each_query([&](std::size_t position, std::size_t query, std::size_t keys) {
    const float* slopes = d_mixed.data() + query;
    float mean = 0;
    for (std::size_t t = 0; t <= position; ++t) {
      d_p[t] = dot(slopes, v.data() + keys + t * s.kv, s.head);
      mean += p[t] * d_p[t];
      add_scaled(p[t], slopes, s.head, d_v.data() + keys + t * s.kv);
    }
    for (std::size_t t = 0; t <= position; ++t) {
      const float slope = p[t] * (d_p[t] - mean) * scale;
      add_scaled(slope, k.data() + keys + t * s.kv, s.head, d_q.data() + query);
      add_scaled(slope, q.data() + query, s.head, d_k.data() + keys + t * s.kv);
    }
  });
  for (std::size_t r = 0; r < rows; ++r) {
    rotate(s, table, r % time, s.heads, true, d_q.data() + r * s.dim);
    rotate(s, table, r % time, s.kv_heads, true, d_k.data() + r * s.kv);
  }
  std::fill(d_h.begin(), d_h.end(), 0.F);
  sum_rows(d_q.data(), s.dim, rows, d.q_bias);
  sum_rows(d_k.data(), s.kv, rows, d.k_bias);
  sum_rows(d_v.data(), s.kv, rows, d.v_bias);
  w.q.multiply_back(d_q.data(), rows, d_h.data());
  w.k.multiply_back(d_k.data(), rows, d_h.data());
  w.v.multiply_back(d_v.data(), rows, d_h.data());
  if (all) {
    add_outer(d_q.data(), s.dim, h.data(), s.dim, rows, d.q);
    add_outer(d_k.data(), s.kv, h.data(), s.dim, rows, d.k);
    add_outer(d_v.data(), s.kv, h.data(), s.dim, rows, d.v);
  }
  norm_rows_back(s, w.attention_norm, x, d_h.data(), rows, gradient, d.attention_norm,
                 d.attention_norm_bias);
}

} // namespace shoal::learn
