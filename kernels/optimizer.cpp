#include "kernels/optimizer.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace shoal::kernels {

namespace {

constexpr std::array<std::string_view, 3> names{"sgd", "adamw", "lamb"};

void step_sgd(const optimizer_config& c, float rate, float scale, std::span<const float> g,
              std::span<float> x, std::span<float> velocity) {
  const auto momentum = static_cast<float>(c.momentum);
  const auto decay = static_cast<float>(c.weight_decay);
  for (std::size_t i = 0; i < x.size(); ++i) {
    float v = scale * g[i];
    if (!velocity.empty())
      v = velocity[i] = momentum * velocity[i] + v;
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

void step_lamb(const optimizer_config& c, double rate, std::int64_t t, std::span<float> x,
               std::span<const float> m, std::span<const float> s) {
  const auto epsilon = static_cast<float>(c.epsilon);
  const auto decay = static_cast<float>(c.weight_decay);
  auto direction = [&](std::size_t i) { return m[i] / (std::sqrt(s[i]) + epsilon) + decay * x[i]; };
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = direction(i);
    squares += u * u;
  }
  const double weight_norm = std::min(norm_of(x), c.weight_norm_clamp);
  const double update_norm = std::sqrt(squares);
  double trust = weight_norm == 0 || update_norm == 0 ? 1.0 : weight_norm / update_norm;
  if (c.trust_ratio_max > 0)
    trust = std::min(trust, c.trust_ratio_max);
  const double correction = c.debias ? std::sqrt(1 - std::pow(c.beta2, static_cast<double>(t))) /
                                           (1 - std::pow(c.beta1, static_cast<double>(t)))
                                     : 1.0;
  const auto size = static_cast<float>(rate * correction * trust);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] -= size * direction(i);
}

} // namespace

std::string_view to_string(optimizer_kind kind) noexcept {
  return names[static_cast<std::size_t>(kind)];
}

result<optimizer_kind> parse_optimizer_kind(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return static_cast<optimizer_kind>(i);
  return failure{"unknown optimizer '" + std::string(name) + "'; there are sgd, adamw and lamb"};
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
    if (v.value >= 1)
      return wrong(std::string(v.name) + " must be below 1");
  if (static_cast<std::size_t>(c.kind) >= names.size())
    return wrong("unknown kind");
  if (c.warmup_steps < 0 || c.decay_steps < 0)
    return wrong("warmup_steps and decay_steps must not be negative");
  if (c.decay_steps > 0 && c.decay_steps <= c.warmup_steps)
    return wrong("decay_steps (" + std::to_string(c.decay_steps) +
                 ") must be above warmup_steps (" + std::to_string(c.warmup_steps) + ")");
  return {};
}

std::size_t state_size(const optimizer_config& config, std::size_t parameter_count) {
  if (config.kind == optimizer_kind::sgd)
    return config.momentum == 0 ? 0 : parameter_count;
  return 2 * parameter_count;
}

double learning_rate_at(const optimizer_config& c, std::int64_t t) {
  SHOAL_CHECK(t >= 1, "steps are counted from 1");
  if (t <= c.warmup_steps)
    return c.learning_rate * static_cast<double>(t) / static_cast<double>(c.warmup_steps);
  if (c.decay_steps == 0)
    return c.learning_rate;
  const double done = static_cast<double>(t - 1 - c.warmup_steps) /
                      static_cast<double>(c.decay_steps - c.warmup_steps);
  return c.learning_rate * (1 - (1 - c.final_rate_fraction) * std::min(done, 1.0));
}

double norm_of(std::span<const float> values) {
  double squares = 0;
  for (const float v : values)
    squares += static_cast<double>(v) * v;
  return std::sqrt(squares);
}

void step(const optimizer_config& config, std::int64_t step_number, std::span<const float> gradient,
          std::span<float> parameters, std::span<float> state,
          std::span<const tensor_slot> layout) {
  const auto n = parameters.size();
  SHOAL_CHECK(gradient.size() == n, "gradient and parameters have equal sizes");
  SHOAL_CHECK(state.size() == state_size(config, n),
              "the state has the size that state_size gives");
  const double rate = learning_rate_at(config, step_number);
  float scale = 1;
  if (config.clip_norm > 0) {
    const double norm = norm_of(gradient);
    if (norm > config.clip_norm)
      scale = static_cast<float>(config.clip_norm / norm);
  }
  if (config.kind == optimizer_kind::sgd)
    return step_sgd(config, static_cast<float>(rate), scale, gradient, parameters, state);
  const auto m = state.first(n), s = state.last(n);
  update_moments(config, scale, gradient, m, s);
  if (config.kind == optimizer_kind::adamw)
    return step_adamw(config, rate, step_number, parameters, m, s);
  if (layout.empty())
    return step_lamb(config, rate, step_number, parameters, m, s);
  for (const auto& slot : layout) {
    SHOAL_CHECK(slot.offset + slot.size() <= n, "the layout lies inside the parameters");
    step_lamb(config, rate, step_number, parameters.subspan(slot.offset, slot.size()),
              m.subspan(slot.offset, slot.size()), s.subspan(slot.offset, slot.size()));
  }
}

} // namespace shoal::kernels
