#include "kernels/optimizer.hpp"

#include "kernels/base/check.hpp"
#include "kernels/compress/blockwise8.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace shoal::kernels {

namespace {

constexpr std::array<std::string_view, 5> names{"sgd", "adamw", "lamb", "adamw8", "lamb8"};

void step_sgd(const optimizer_config& c, float rate, float scale, std::span<const float> g,
              std::span<float> x, std::span<float> velocity) {
  const auto momentum = static_cast<float>(c.momentum);
  const auto decay = static_cast<float>(c.weight_decay);
  for (std::size_t i = 0; i < x.size(); ++i) {
    float v = scale * g[i];
    if (!velocity.empty()) v = velocity[i] = momentum * velocity[i] + v;
    x[i] -= rate * (v + decay * x[i]);
  }
}

/// m and s of Adam, without the correction of their bias.
void update_moments(const optimizer_config& c, float scale, std::span<const float> g,
                    std::span<float> m, std::span<float> s) {
  const auto b1 = static_cast<float>(c.beta1), b2 = static_cast<float>(c.beta2);
  const auto a1 = static_cast<float>(1 - c.beta1), a2 = static_cast<float>(1 - c.beta2);
  const float* gradient = g.data();
  float* first = m.data();
  float* second = s.data();
  for (std::size_t i = 0; i < g.size(); ++i) {
    const float v = scale * gradient[i];
    first[i] = b1 * first[i] + a1 * v;
    second[i] = b2 * second[i] + a2 * (v * v);
  }
}

void step_adamw(const optimizer_config& c, double rate, std::int64_t t, std::span<float> x,
                std::span<const float> m, std::span<const float> s) {
  const auto kept = static_cast<float>(1 - rate * c.weight_decay);
  const auto size = static_cast<float>(rate / (1 - std::pow(c.beta1, static_cast<double>(t))));
  const auto root = static_cast<float>(std::sqrt(1 - std::pow(c.beta2, static_cast<double>(t))));
  const auto epsilon = static_cast<float>(c.epsilon);
  float* value = x.data();
  const float* first = m.data();
  const float* second = s.data();
  for (std::size_t i = 0; i < x.size(); ++i)
    value[i] = value[i] * kept - size * (first[i] / (std::sqrt(second[i]) / root + epsilon));
}

/// The step of LAMB for one tensor: x -= size * direction.
struct lamb_direction {
  float epsilon, decay;
  explicit lamb_direction(const optimizer_config& c)
      : epsilon(static_cast<float>(c.epsilon)), decay(static_cast<float>(c.weight_decay)) {}
  float operator()(float m, float s, float x) const {
    return m / (std::sqrt(s) + epsilon) + decay * x;
  }
};

float lamb_size(const optimizer_config& c, double rate, std::int64_t t, std::span<const float> x,
                double update_squares) {
  const double weight_norm = std::min(norm_of(x), c.weight_norm_clamp);
  const double update_norm = std::sqrt(update_squares);
  double trust = weight_norm == 0 || update_norm == 0 ? 1.0 : weight_norm / update_norm;
  if (c.trust_ratio_max > 0) trust = std::min(trust, c.trust_ratio_max);
  const double correction = c.debias ? std::sqrt(1 - std::pow(c.beta2, static_cast<double>(t))) /
                                           (1 - std::pow(c.beta1, static_cast<double>(t)))
                                     : 1.0;
  return static_cast<float>(rate * correction * trust);
}

void step_lamb(const optimizer_config& c, double rate, std::int64_t t, std::span<float> x,
               std::span<const float> m, std::span<const float> s) {
  const lamb_direction direction(c);
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = direction(m[i], s[i], x[i]);
    squares += u * u;
  }
  const auto size = lamb_size(c, rate, t, x, squares);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= size * direction(m[i], s[i], x[i]);
}

/// The moments in 8 bits, block by block. A block that is not finite has the scale NaN, so all its
/// decoded values are NaN.
class moments8 {
public:
  moments8(const optimizer_config& config, float scale, std::span<const float> gradient,
           std::span<std::byte> state)
      : config_(config), scale_(scale), gradient_(gradient),
        first_(state.first(blockwise8_bytes(gradient.size()))),
        second_(state.subspan(first_.size(), first_.size())),
        scales_((first_.size() - gradient.size()) / sizeof(float)) {}

  std::size_t blocks() const { return scales_; }

  /// The moments of elements [begin, end) after this step, without changing the state. Requires:
  /// both in one block.
  void next(std::size_t begin, std::size_t end) {
    decode(first_, blockwise8_values(), begin, end, m_);
    decode(second_, blockwise8_unsigned_values(), begin, end, s_);
    update_moments(config_, scale_, gradient_.subspan(begin, end - begin), m(end - begin),
                   s(end - begin));
  }
  std::span<float> m(std::size_t count) { return std::span(m_).first(count); }
  std::span<float> s(std::size_t count) { return std::span(s_).first(count); }

  /// Block b after this step becomes the state. Requires: the last calls of next covered the whole
  /// block.
  void keep(std::size_t b) {
    const std::size_t count = std::min(blockwise8_block, gradient_.size() - b * blockwise8_block);
    keep_in(first_, b, count,
            encode_blockwise8(m(count), std::span(code_).first(blockwise8_bytes(count))).ok());
    keep_in(
        second_, b, count,
        encode_blockwise8_unsigned(s(count), std::span(code_).first(blockwise8_bytes(count))).ok());
  }

private:
  using block = std::array<float, blockwise8_block>;

  void decode(std::span<const std::byte> from, const std::array<float, 256>& values,
              std::size_t begin, std::size_t end, block& out) const {
    const auto absmax = load<float>(from.data(), begin / blockwise8_block);
    const std::byte* const codes = from.data() + scales_ * sizeof(float);
    for (std::size_t i = begin; i < end; ++i)
      out[i - begin] = values[std::to_integer<std::size_t>(codes[i])] * absmax;
  }

  void keep_in(std::span<std::byte> where, std::size_t b, std::size_t count, bool finite) {
    store(where.data(), b,
          finite ? load<float>(code_.data(), 0) : std::numeric_limits<float>::quiet_NaN());
    std::byte* const codes = where.data() + scales_ * sizeof(float) + b * blockwise8_block;
    if (finite)
      std::memcpy(codes, code_.data() + sizeof(float), count);
    else
      std::memset(codes, 0, count);
  }

  const optimizer_config& config_;
  float scale_;
  std::span<const float> gradient_;
  std::span<std::byte> first_, second_;
  std::size_t scales_;
  block m_, s_;
  std::array<std::byte, blockwise8_bytes(blockwise8_block)> code_;
};

/// Calls use(begin, end) for the pieces of [begin, end) that lie in one block each, in order.
template <class Use>
void by_blocks(std::size_t begin, std::size_t end, Use use) {
  while (begin < end) {
    const auto next = std::min(end, (begin / blockwise8_block + 1) * blockwise8_block);
    use(begin, next);
    begin = next;
  }
}

void step_adamw8(const optimizer_config& c, double rate, std::int64_t t, std::span<float> x,
                 moments8& moments) {
  by_blocks(0, x.size(), [&](std::size_t begin, std::size_t end) {
    const auto count = end - begin;
    moments.next(begin, end);
    step_adamw(c, rate, t, x.subspan(begin, count), moments.m(count), moments.s(count));
    moments.keep(begin / blockwise8_block);
  });
}

/// Decodes three times, for the norm, for the step, and for the state. So it needs no memory for
/// all moments as floats.
void step_lamb8(const optimizer_config& c, double rate, std::int64_t t, std::span<float> x,
                std::span<const tensor_slot> layout, moments8& moments) {
  const lamb_direction direction(c);
  const auto step_tensor = [&](std::size_t first, std::size_t last) {
    double squares = 0;
    const auto each = [&](auto use) {
      by_blocks(first, last, [&](std::size_t begin, std::size_t end) {
        moments.next(begin, end);
        const auto m = moments.m(end - begin), s = moments.s(end - begin);
        for (std::size_t i = begin; i < end; ++i)
          use(x[i], direction(m[i - begin], s[i - begin], x[i]));
      });
    };
    each([&](float, double u) { squares += u * u; });
    const auto size = lamb_size(c, rate, t, x.subspan(first, last - first), squares);
    each([&](float& value, float u) { value -= size * u; });
  };
  if (layout.empty()) step_tensor(0, x.size());
  for (const auto& slot : layout) step_tensor(slot.offset, slot.offset + slot.size());
  by_blocks(0, x.size(), [&](std::size_t begin, std::size_t end) {
    moments.next(begin, end);
    moments.keep(begin / blockwise8_block);
  });
}

} // namespace

std::string_view to_string(optimizer_kind kind) noexcept {
  return names[static_cast<std::size_t>(kind)];
}

result<optimizer_kind> parse_optimizer_kind(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<optimizer_kind>(i);
  return failure{"unknown optimizer '" + std::string(name) +
                 "'; there are sgd, adamw, lamb, adamw8 and lamb8"};
}

result<void> validate(const optimizer_config& c) {
  auto wrong = [](std::string what) -> result<void> {
    return failure{"optimizer: " + std::move(what)};
  };
  struct named {
    const char* name;
    double value;
  };
  for (const named& v :
       {named{"learning_rate", c.learning_rate}, named{"momentum", c.momentum},
        named{"beta1", c.beta1}, named{"beta2", c.beta2}, named{"epsilon", c.epsilon},
        named{"weight_decay", c.weight_decay}, named{"weight_norm_clamp", c.weight_norm_clamp},
        named{"trust_ratio_max", c.trust_ratio_max}, named{"clip_norm", c.clip_norm},
        named{"final_rate_fraction", c.final_rate_fraction}})
    if (!std::isfinite(v.value) || v.value < 0)
      return wrong(std::string(v.name) + " must be finite and not negative");
  for (const named& v :
       {named{"momentum", c.momentum}, named{"beta1", c.beta1}, named{"beta2", c.beta2}})
    if (v.value >= 1) return wrong(std::string(v.name) + " must be below 1");
  if (static_cast<std::size_t>(c.kind) >= names.size()) return wrong("unknown kind");
  if (c.decay_steps > 0 && c.decay_steps <= c.warmup_steps)
    return wrong("decay_steps (" + std::to_string(c.decay_steps) +
                 ") must be above warmup_steps (" + std::to_string(c.warmup_steps) + ")");
  return {};
}

bool float_state(optimizer_kind kind) noexcept {
  return kind != optimizer_kind::adamw8 && kind != optimizer_kind::lamb8;
}

std::size_t state_size(const optimizer_config& config, std::size_t parameter_count) {
  SHOAL_CHECK(float_state(config.kind), "a coded state is not made of floats");
  if (config.kind == optimizer_kind::sgd) return config.momentum == 0 ? 0 : parameter_count;
  return 2 * parameter_count;
}

std::size_t state_bytes(const optimizer_config& config, std::size_t parameter_count) {
  if (float_state(config.kind)) return sizeof(float) * state_size(config, parameter_count);
  return (2 * blockwise8_bytes(parameter_count) + 3) / 4 * 4;
}

double least_second_moment(const optimizer_config& config, double m) {
  const double memory = 1 - config.beta1 * config.beta1 / config.beta2;
  if (!(memory > 0) || config.beta1 >= 1) return 0;
  const double ratio = (1 - config.beta2) * memory / ((1 - config.beta1) * (1 - config.beta1));
  constexpr double rounding = 1e-4; // rounding of floats, over many steps
  return m * m * ratio * (1 - rounding);
}

bool mend_moments(const optimizer_config& config, std::size_t parameter_count,
                  std::span<float> state) {
  SHOAL_CHECK(state.size() == state_size(config, parameter_count),
              "the state has the size that state_size gives");
  if (config.kind == optimizer_kind::sgd) return false;
  const auto m = state.first(parameter_count), s = state.last(parameter_count);
  const double unit = least_second_moment(config, 1);
  bool raised = false;
  for (std::size_t i = 0; i < parameter_count; ++i) {
    const auto least =
        static_cast<float>(unit * static_cast<double>(m[i]) * static_cast<double>(m[i]));
    if (s[i] < least) {
      s[i] = least;
      raised = true;
    }
  }
  return raised;
}

payload repaired_state(const optimizer_config& config, std::size_t parameter_count,
                       payload averaged) {
  if (averaged.is_size_only() || averaged.empty() || !float_state(config.kind)) return averaged;
  std::vector<float> state(averaged.floats().begin(), averaged.floats().end());
  if (!mend_moments(config, parameter_count, state)) return averaged;
  return payload{std::move(state)};
}

double learning_rate_at(const optimizer_config& c, std::int64_t t) {
  SHOAL_CHECK(t >= 1, "steps are counted from 1");
  const auto step = static_cast<std::uint64_t>(t);
  if (step <= c.warmup_steps)
    return c.learning_rate * static_cast<double>(t) / static_cast<double>(c.warmup_steps);
  if (c.decay_steps == 0) return c.learning_rate;
  const double done = static_cast<double>(step - 1 - c.warmup_steps) /
                      static_cast<double>(c.decay_steps - c.warmup_steps);
  return c.learning_rate * (1 - (1 - c.final_rate_fraction) * std::min(done, 1.0));
}

double norm_of(std::span<const float> values) {
  double squares = 0;
  for (const float v : values) squares += static_cast<double>(v) * v;
  return std::sqrt(squares);
}

namespace {

/// By how much gradients are scaled down.
float clip(const optimizer_config& config, std::span<const float> gradient) {
  if (config.clip_norm == 0) return 1;
  const double norm = norm_of(gradient);
  return norm > config.clip_norm ? static_cast<float>(config.clip_norm / norm) : 1;
}

void check_layout(std::span<const tensor_slot> layout, std::size_t n) {
  for (const auto& slot : layout)
    SHOAL_CHECK(slot.offset + slot.size() <= n, "the layout lies inside the parameters");
}

} // namespace

void step(const optimizer_config& config, std::int64_t step_number, std::span<const float> gradient,
          std::span<float> parameters, std::span<float> state,
          std::span<const tensor_slot> layout) {
  const auto n = parameters.size();
  SHOAL_CHECK(gradient.size() == n, "gradient and parameters have equal sizes");
  SHOAL_CHECK(state.size() == state_size(config, n),
              "the state has the size that state_size gives");
  const double rate = learning_rate_at(config, step_number);
  const float scale = clip(config, gradient);
  if (config.kind == optimizer_kind::sgd)
    return step_sgd(config, static_cast<float>(rate), scale, gradient, parameters, state);
  const auto m = state.first(n), s = state.last(n);
  update_moments(config, scale, gradient, m, s);
  if (config.kind == optimizer_kind::adamw)
    return step_adamw(config, rate, step_number, parameters, m, s);
  if (layout.empty()) return step_lamb(config, rate, step_number, parameters, m, s);
  check_layout(layout, n);
  for (const auto& slot : layout)
    step_lamb(config, rate, step_number, parameters.subspan(slot.offset, slot.size()),
              m.subspan(slot.offset, slot.size()), s.subspan(slot.offset, slot.size()));
}

void step(const optimizer_config& config, std::int64_t step_number, std::span<const float> gradient,
          std::span<float> parameters, std::span<std::byte> state,
          std::span<const tensor_slot> layout) {
  const auto n = parameters.size();
  SHOAL_CHECK(gradient.size() == n, "gradient and parameters have equal sizes");
  SHOAL_CHECK(state.size() == state_bytes(config, n),
              "the state has the size that state_bytes gives");
  if (float_state(config.kind)) {
    SHOAL_CHECK(reinterpret_cast<std::uintptr_t>(state.data()) % alignof(float) == 0,
                "a state of floats is aligned");
    return step(config, step_number, gradient, parameters,
                std::span(reinterpret_cast<float*>(state.data()), state.size() / sizeof(float)),
                layout);
  }
  check_layout(layout, n);
  const double rate = learning_rate_at(config, step_number);
  moments8 moments(config, clip(config, gradient), gradient, state);
  if (config.kind == optimizer_kind::adamw8)
    return step_adamw8(config, rate, step_number, parameters, moments);
  step_lamb8(config, rate, step_number, parameters, layout, moments);
}

void step_8bit_reference(const optimizer_config& config, std::int64_t step_number,
                         std::span<const float> gradient, std::span<float> parameters,
                         std::span<std::byte> state, std::span<const tensor_slot> layout) {
  const auto n = parameters.size();
  SHOAL_CHECK(!float_state(config.kind) && state.size() == state_bytes(config, n),
              "a state in 8 bits, of its size");
  const auto first = state.first(blockwise8_bytes(n)),
             second = state.subspan(first.size(), first.size());
  std::vector<float> floats(2 * n);
  const auto m = std::span(floats).first(n), s = std::span(floats).last(n);
  auto with_floats = config;
  with_floats.kind =
      config.kind == optimizer_kind::adamw8 ? optimizer_kind::adamw : optimizer_kind::lamb;
  SHOAL_CHECK(decode_blockwise8_reference(first, m).ok() &&
                  decode_blockwise8_unsigned_reference(second, s).ok(),
              "a finite state");
  step(with_floats, step_number, gradient, parameters, std::span(floats), layout);
  SHOAL_CHECK(encode_blockwise8_reference(m, first).ok() &&
                  encode_blockwise8_unsigned_reference(s, second).ok(),
              "a finite gradient");
}

} // namespace shoal::kernels
