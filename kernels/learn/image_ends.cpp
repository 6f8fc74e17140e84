#include "kernels/learn/image_ends.hpp"

#include "kernels/base/check.hpp"
#include "kernels/dense.hpp"

#include <algorithm>

namespace shoal::learn {

namespace {

class image_ends final : public network_ends {
public:
  explicit image_ends(const image_shape& shape) : s_(shape) {
    SHOAL_CHECK(s_.pixels > 0 && s_.classes > 1 && s_.width > 0, "images have a size");
    norm_ = s_.width * (s_.pixels + 1);
    out_ = norm_ + 2 * s_.width;
  }

  std::size_t sample_bytes() const noexcept override { return s_.pixels + 1; }
  std::size_t width() const noexcept override { return s_.width; }
  std::size_t parameter_count() const noexcept override {
    return out_ + (s_.width + 1) * s_.classes;
  }

  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    std::vector<float> all(parameter_count());
    const std::span<float> p(all);
    kernels::initial_linear(seed, 101, s_.pixels, w_in(p), b_in(p));
    std::ranges::fill(gain(p), 1.0F);
    kernels::initial_linear(seed, 102, s_.width, w_out(p), b_out(p));
    return all;
  }

  std::vector<float> enter(std::span<const float> p,
                           std::span<const std::byte> samples) const override {
    std::vector<float> out(samples.size() / sample_bytes() * s_.width);
    kernels::linear(w_in(p), b_in(p), s_.pixels, pixels_of(samples), out);
    return out;
  }
  void enter_backward(std::span<const float> p, std::span<const std::byte> samples,
                      std::span<const float> gradient,
                      std::span<float> gradient_sum) const override {
    kernels::linear_backward(w_in(p), s_.pixels, pixels_of(samples), gradient, w_in(gradient_sum),
                             b_in(gradient_sum), {});
  }

  judgement judge(std::span<const float> p, std::span<const std::byte> samples,
                  std::span<const float> x) const override {
    std::vector<float> normal(x.size()), logits(x.size() / s_.width * s_.classes);
    return losses(p, samples, x, normal, logits, {});
  }

  judgement leave(std::span<const float> p, std::span<const std::byte> samples,
                  std::span<const float> x, std::span<float> gradient_x,
                  std::span<float> gradient_sum) const override {
    std::vector<float> normal(x.size()), logits(x.size() / s_.width * s_.classes);
    std::vector<float> of_logits(logits.size()), of_normal(x.size());
    const auto out = losses(p, samples, x, normal, logits, of_logits);
    kernels::linear_backward(w_out(p), s_.width, normal, of_logits, w_out(gradient_sum),
                             b_out(gradient_sum), of_normal);
    kernels::layer_norm_backward(gain(p), x, of_normal, gain(gradient_sum), bias(gradient_sum),
                                 gradient_x);
    return out;
  }

private:
  template <class S>
  S w_in(S p) const {
    return p.first(s_.pixels * s_.width);
  }
  template <class S>
  S b_in(S p) const {
    return p.subspan(s_.pixels * s_.width, s_.width);
  }
  template <class S>
  S gain(S p) const {
    return p.subspan(norm_, s_.width);
  }
  template <class S>
  S bias(S p) const {
    return p.subspan(norm_ + s_.width, s_.width);
  }
  template <class S>
  S w_out(S p) const {
    return p.subspan(out_, s_.width * s_.classes);
  }
  template <class S>
  S b_out(S p) const {
    return p.subspan(out_ + s_.width * s_.classes, s_.classes);
  }

  std::vector<float> pixels_of(std::span<const std::byte> samples) const {
    std::vector<float> out;
    out.reserve(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (i % sample_bytes() != s_.pixels)
        out.push_back(static_cast<float>((std::to_integer<int>(samples[i]) / 255.0 - s_.mean) /
                                         s_.deviation));
    return out;
  }

  judgement losses(std::span<const float> p, std::span<const std::byte> samples,
                   std::span<const float> x, std::span<float> normal, std::span<float> logits,
                   std::span<float> of_logits) const {
    kernels::layer_norm(gain(p), bias(p), x, normal);
    kernels::linear(w_out(p), b_out(p), s_.width, normal, logits);
    const auto rows = samples.size() / sample_bytes();
    judgement out;
    for (std::size_t n = 0; n < rows; ++n) {
      const auto label = std::to_integer<std::size_t>(samples[n * sample_bytes() + s_.pixels]);
      const auto one = kernels::cross_entropy(
          logits.subspan(n * s_.classes, s_.classes), label, 1 / static_cast<float>(rows),
          of_logits.empty() ? of_logits : of_logits.subspan(n * s_.classes, s_.classes));
      out.loss += one.loss / static_cast<double>(rows);
      out.right += one.right ? 1 : 0;
    }
    return out;
  }

  image_shape s_;
  std::size_t norm_ = 0, out_ = 0; // where the norm and the exit begin
};

} // namespace

std::shared_ptr<const network_ends> make_image_ends(const image_shape& shape) {
  return std::make_shared<const image_ends>(shape);
}

} // namespace shoal::learn
