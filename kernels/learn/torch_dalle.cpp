// The code of DALL-E that calls libtorch, a part of the module of torch_module.cpp.
#include "kernels/learn/attend.hpp"
#include "kernels/learn/torch_dalle_pass.hpp"
#include "kernels/learn/transformer_math.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace shoal::learn {

namespace {

tensors gradients(const Tensor& out, const tensors& wanted, const Tensor& upstream) {
  return torch::autograd::grad({out}, wanted, upstream.defined() ? tensors{upstream} : tensors{},
                               c10::nullopt, false, true);
}

class torch_dalle final : public dalle_math {
public:
  explicit torch_dalle(const dalle_shape& shape) : shape_(shape), tables_(shape.config) {
    shoal_use_one_thread();
  }

  std::vector<dalle_loss> accumulate_gradient(std::span<const float> parameters,
                                              const dalle_batch& batch,
                                              std::span<float> gradient_sum) const override {
    shoal_use_one_thread();
    at::AutoGradMode with_gradient(true);
    const dalle_pass pass(config(), tables_, batch);
    if (!shape_.reversible) return by_autograd(pass, parameters, gradient_sum);
    const auto embedding = leaves_of(parameters, 0, 1);
    const auto embedded = at::embedding(embedding[0], pass.inputs());
    auto [y1, y2] = through(pass, parameters, embedded.detach());
    auto [losses, of_mean] = back_head(pass, (y1 + y2) / 2, parameters, gradient_sum);
    // Both halves get half of the gradient of their mean.
    auto d1 = of_mean / 2, d2 = d1.clone();
    of_mean.reset();
    for (auto i = config().layers; i-- > 0;) {
      const auto second = half_of(parameters, i, 1);
      const auto g = back([&](const Tensor& x) { return pass.feed_forward(x, second); }, y1, d2,
                          second, gradient_sum);
      d1 = d1 + g.input;
      y2 = y2 - g.output;
      const auto first = half_of(parameters, i, 0);
      const auto f = back([&](const Tensor& x) { return pass.attention(x, first); }, y2, d1, first,
                          gradient_sum);
      d2 = d2 + f.input;
      y1 = y1 - f.output;
    }
    auto of_embedding = gradients(embedded, embedding.values, d1 + d2);
    add_at(gradient_sum, 0, of_embedding);
    return losses;
  }

  std::vector<dalle_loss> losses(std::span<const float> parameters,
                                 const dalle_batch& batch) const override {
    shoal_use_one_thread();
    at::NoGradGuard without_gradient;
    const dalle_pass pass(config(), tables_, batch);
    const auto [y1, y2] =
        through(pass, parameters, at::embedding(leaves_of(parameters, 0, 1)[0], pass.inputs()));
    const auto [text, image] = pass.losses((y1 + y2) / 2, head_leaves(parameters));
    return listed(text, image);
  }

  std::unique_ptr<dalle_decoder> decode(std::span<const float> parameters,
                                        const dalle_batch& captions,
                                        std::span<const std::int64_t> caption_of) const override;

private:
  friend class torch_dalle_decoder;
  const dalle_config& config() const { return shape_.config; }

  std::size_t layers_begin() const {
    return 1 + dalle_weight_tensors * static_cast<std::size_t>(config().weight_sets());
  }
  std::size_t head_begin() const {
    return layers_begin() + dalle_layer_tensors * static_cast<std::size_t>(config().layers);
  }

  leaves leaves_of(std::span<const float> values, std::size_t first, std::size_t count) const {
    leaves out{first, {}};
    for (auto i = first; i < first + count; ++i) {
      const auto& slot = shape_.layout[i];
      out.values.push_back(view_of(values.subspan(slot.offset), slot.shape)
                               .set_requires_grad(at::GradMode::is_enabled()));
    }
    return out;
  }

  /// `which`: 0 attention, 1 feed-forward.
  half_layer half_of(std::span<const float> values, std::int64_t layer, std::size_t which) const {
    const auto set = static_cast<std::size_t>(config().weights_of(layer));
    return {leaves_of(values, 1 + dalle_weight_tensors * set + 3 * which, 3 + which),
            leaves_of(values,
                      layers_begin() + dalle_layer_tensors * static_cast<std::size_t>(layer) +
                          3 * which,
                      3),
            attention_of(config(), layer)};
  }

  tensors head_leaves(std::span<const float> values) const {
    auto out = leaves_of(values, 0, 1).values;
    for (auto& one : leaves_of(values, head_begin(), 3).values) out.push_back(std::move(one));
    return out;
  }

  void add_at(std::span<float> sum, std::size_t first, std::span<Tensor> found) const {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].defined()) {
        const auto& slot = shape_.layout[first + i];
        view_of(sum.subspan(slot.offset), slot.shape).add_(found[i]);
      }
  }

  std::pair<Tensor, Tensor> through(const dalle_pass& pass, std::span<const float> parameters,
                                    const Tensor& x) const {
    at::NoGradGuard without_gradient;
    auto x1 = x, x2 = x;
    for (std::int64_t i = 0; i < config().layers; ++i) {
      x1 = x1 + pass.attention(x2, half_of(parameters, i, 0));
      x2 = x2 + pass.feed_forward(x1, half_of(parameters, i, 1));
    }
    return {x1, x2};
  }

  struct head_passed_back {
    std::vector<dalle_loss> losses;
    Tensor input; ///< the gradient of the layers' mean
  };

  /// Frees the head's gradients, which are as large as the embedding, before the layers need
  /// memory.
  head_passed_back back_head(const dalle_pass& pass, const Tensor& mean,
                             std::span<const float> parameters,
                             std::span<float> gradient_sum) const {
    const auto y = mean.detach().set_requires_grad(true);
    auto wanted = head_leaves(parameters);
    const auto [text, image] = pass.losses(y, wanted);
    wanted.push_back(y);
    auto found = gradients(total(text, image), wanted, {});
    auto of_mean = found.back();
    found.pop_back();
    add_at(gradient_sum, 0, std::span(found).first(1));
    add_at(gradient_sum, head_begin(), std::span(found).subspan(1));
    return {listed(text, image), std::move(of_mean)};
  }

  struct passed_back {
    Tensor output, input; ///< the output of half a layer, and the gradient of its input
  };

  /// Computes half a layer again at `x`, and takes the gradient `upstream` through it.
  template <class Half>
  passed_back back(Half half, const Tensor& x, const Tensor& upstream, const half_layer& q,
                   std::span<float> gradient_sum) const {
    const auto input = x.detach().set_requires_grad(true);
    const auto output = half(input);
    auto wanted = q.shared.values;
    wanted.insert(wanted.end(), q.own.values.begin(), q.own.values.end());
    wanted.push_back(input);
    auto found = gradients(output, wanted, upstream);
    add_at(gradient_sum, q.shared.first, std::span(found).first(q.shared.values.size()));
    add_at(gradient_sum, q.own.first, std::span(found).subspan(q.shared.values.size(), 3));
    return {output.detach(), found.back()};
  }

  /// One graph of the whole model.
  std::vector<dalle_loss> by_autograd(const dalle_pass& pass, std::span<const float> parameters,
                                      std::span<float> gradient_sum) const {
    const auto all = leaves_of(parameters, 0, shape_.layout.size());
    const auto taken = [&](leaves from) {
      for (std::size_t i = 0; i < from.values.size(); ++i) from.values[i] = all[from.first + i];
      return from;
    };
    const auto half = [&](std::int64_t layer, std::size_t which) {
      auto out = half_of(parameters, layer, which);
      return half_layer{taken(out.shared), taken(out.own), out.kind};
    };
    auto x1 = at::embedding(all[0], pass.inputs()), x2 = x1;
    for (std::int64_t i = 0; i < config().layers; ++i) {
      x1 = x1 + pass.attention(x2, half(i, 0));
      x2 = x2 + pass.feed_forward(x1, half(i, 1));
    }
    const auto head = head_begin();
    const auto [text, image] =
        pass.losses((x1 + x2) / 2, {all[0], all[head], all[head + 1], all[head + 2]});
    auto found = gradients(total(text, image), all.values, {});
    add_at(gradient_sum, 0, found);
    return listed(text, image);
  }

  static Tensor total(const Tensor& text, const Tensor& image) {
    return ((text + image * dalle_image_weight) / (1 + dalle_image_weight)).sum();
  }

  static std::vector<dalle_loss> listed(const Tensor& text, const Tensor& image) {
    std::vector<dalle_loss> out;
    for (std::int64_t s = 0; s < text.size(0); ++s)
      out.push_back({text[s].item<double>(), image[s].item<double>()});
    return out;
  }

  dalle_shape shape_;
  dalle_tables tables_;
};

/// One position at a time. Each half layer keeps its normed inputs, which later positions take
/// channels from. A caption is read once, and its keys and values are copied to its pictures.
class torch_dalle_decoder final : public dalle_decoder {
public:
  torch_dalle_decoder(const torch_dalle& model, std::span<const float> parameters,
                      const dalle_batch& captions, std::span<const std::int64_t> caption_of)
      : model_(model), parameters_(parameters), config_(model.config()),
        pictures_(captions.samples), layers_(static_cast<std::size_t>(config_.layers)),
        words_(static_cast<std::size_t>(captions.samples)) {
    at::NoGradGuard without_gradient;
    const dalle_pass pass(config_, model.tables_, captions);
    const auto first = config_.text_length + 1;
    for (std::size_t i = 0; i < captions.text.size(); ++i) {
      const auto length = static_cast<std::size_t>(config_.text_length);
      if (captions.text[i] != 0) words_[i / length] = static_cast<std::int64_t>(i % length) + 1;
    }
    for (auto& one : layers_)
      for (auto* tensor : {&one.normed[0], &one.normed[1], &one.keys, &one.values})
        *tensor = at::zeros({first, pictures_, config_.dim});
    for (std::int64_t i = 0; i < first; ++i) take(pass.ids().select(1, i), i + 1 == first);
    copy_to_pictures(caption_of);
  }

  const std::vector<float>& logits() const override { return logits_; }

  void add(std::span<const token_id> codes) override {
    shoal_use_one_thread();
    at::NoGradGuard without_gradient;
    take(at::from_blob(const_cast<token_id*>(codes.data()), {pictures_}, at::kLong) +
             config_.text_tokens(),
         true);
  }

private:
  /// [positions, pictures, dim] each.
  struct kept {
    std::array<Tensor, 2> normed; ///< inputs of attention, and of the feed-forward part
    Tensor keys, values;
  };

  void copy_to_pictures(std::span<const std::int64_t> caption_of) {
    const auto count = static_cast<std::int64_t>(caption_of.size());
    const auto which =
        at::from_blob(const_cast<std::int64_t*>(caption_of.data()), {count}, at::kLong);
    for (auto& one : layers_)
      for (auto* tensor : {&one.normed[0], &one.normed[1], &one.keys, &one.values}) {
        auto grown = at::zeros({config_.positions(), count, config_.dim});
        grown.narrow(0, 0, at_).copy_(tensor->index_select(1, which));
        *tensor = std::move(grown);
      }
    const auto codes = static_cast<std::size_t>(config_.codes);
    std::vector<std::int64_t> words;
    std::vector<float> logits;
    for (const auto caption : caption_of) {
      words.push_back(words_[static_cast<std::size_t>(caption)]);
      const auto row = std::span(logits_).subspan(static_cast<std::size_t>(caption) * codes, codes);
      logits.insert(logits.end(), row.begin(), row.end());
    }
    words_ = std::move(words);
    logits_ = std::move(logits);
    pictures_ = count;
  }

  /// The channels of position at_ after the shift, from all normed inputs up to it.
  Tensor shifted(const Tensor& normed) const {
    const auto first = config_.text_length + 1, half = config_.dim / 2, quarter = config_.dim / 4;
    const auto from = [&](std::int64_t position, bool there, std::int64_t low, std::int64_t width) {
      return there ? normed.select(0, position).narrow(1, low, width)
                   : at::zeros({pictures_, width});
    };
    const auto rest = from(at_, true, half, half);
    if (at_ < first) return at::cat({from(at_ - 1, at_ > 0, 0, half), rest}, 1);
    const auto code = at_ - first;
    return at::cat({from(at_ - config_.side, code >= config_.side, 0, quarter),
                    from(at_ - 1, code % config_.side != 0, quarter, quarter), rest},
                   1);
  }

  /// The attention of a query [pictures, dim] to the positions that at_ sees.
  Tensor attended(const Tensor& query, const kept& own, dalle_attention kind) const {
    auto out = at::zeros({pictures_, config_.dim});
    std::vector<std::int64_t> seen;
    for (std::int64_t s = 0; s < pictures_; ++s) {
      const auto words = words_[static_cast<std::size_t>(s)];
      seen.clear();
      for (const auto p : model_.tables_.seen(kind, at_))
        if (p <= words || p > config_.text_length) seen.push_back(p);
      const auto row = [&](const Tensor& of) { return of.data_ptr<float>() + s * config_.dim; };
      attend(row(query),
             {row(own.keys), row(own.values), static_cast<std::size_t>(pictures_ * config_.dim),
              static_cast<std::size_t>(config_.heads),
              static_cast<std::size_t>(config_.head_width())},
             seen, row(out));
    }
    return out;
  }

  Tensor attention(const Tensor& x, kept& own, const half_layer& q) {
    own.normed[0].select(0, at_).copy_(dalle_pass::normed(x, q.own));
    const auto all =
        dalle_tables::rotate(at::linear(shifted(own.normed[0]), q.shared[0])
                                 .view({pictures_, 3, config_.heads, config_.head_width()}),
                             model_.tables_.cosine[at_], model_.tables_.sine[at_]);
    const auto part = [&](std::int64_t i) {
      return all.select(1, i).reshape({pictures_, config_.dim});
    };
    own.keys.select(0, at_).copy_(part(1));
    own.values.select(0, at_).copy_(part(2));
    return at::linear(attended(part(0).contiguous(), own, q.kind), q.shared[1], q.shared[2]) *
           q.own[2];
  }

  void take(const Tensor& ids, bool predicts) {
    auto x1 = at::embedding(model_.leaves_of(parameters_, 0, 1)[0], ids), x2 = x1;
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      auto& own = layers_[static_cast<std::size_t>(i)];
      x1 = x1 + attention(x2, own, model_.half_of(parameters_, i, 0));
      const auto second = model_.half_of(parameters_, i, 1);
      own.normed[1].select(0, at_).copy_(dalle_pass::normed(x1, second.own));
      x2 = x2 + dalle_pass::after_shift(shifted(own.normed[1]), second);
    }
    ++at_;
    if (!predicts) return;
    const auto q = model_.head_leaves(parameters_);
    const auto x = at::layer_norm((x1 + x2) / 2, {config_.dim}, q[1], q[2], norm_epsilon);
    const auto out = at::linear(x, q[0].narrow(0, config_.text_tokens(), config_.codes),
                                q[3].narrow(0, config_.text_tokens(), config_.codes))
                         .contiguous();
    logits_.assign(out.data_ptr<float>(), out.data_ptr<float>() + out.numel());
  }

  const torch_dalle& model_;
  std::span<const float> parameters_;
  const dalle_config& config_;
  std::int64_t pictures_;
  std::vector<kept> layers_;
  std::vector<std::int64_t> words_; ///< tokens of each caption without its padding
  std::vector<float> logits_;
  std::int64_t at_ = 0;
};

std::unique_ptr<dalle_decoder> torch_dalle::decode(std::span<const float> parameters,
                                                   const dalle_batch& captions,
                                                   std::span<const std::int64_t> caption_of) const {
  shoal_use_one_thread();
  return std::make_unique<torch_dalle_decoder>(*this, parameters, captions, caption_of);
}

} // namespace

} // namespace shoal::learn

extern "C" shoal::learn::dalle_math* shoal_make_dalle_math(const shoal::learn::dalle_shape& shape) {
  return new shoal::learn::torch_dalle(shape);
}
