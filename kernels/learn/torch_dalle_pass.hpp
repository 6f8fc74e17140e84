// One pass of DALL-E's decoder through libtorch: the layers, their masks, the token shift and the
// losses. Only torch_dalle.cpp includes this file.
#pragma once

#define AT_PER_OPERATOR_HEADERS
#include "kernels/learn/dalle_geometry.hpp"
#include "kernels/learn/dalle_math.hpp"
#include "kernels/learn/torch_view.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace shoal::learn {

using at::Tensor;
using tensors = std::vector<Tensor>;

inline constexpr double norm_epsilon = 1e-5;
inline constexpr float hidden_score = -std::numeric_limits<float>::infinity();

inline Tensor copy_of(const std::vector<float>& values, const std::vector<std::int64_t>& shape) {
  return view_of(values, shape).clone();
}

/// The tables of the positions, which all passes share.
struct dalle_tables {
  explicit dalle_tables(const dalle_config& c) {
    const auto n = c.positions(), pairs = c.head_width() / 2;
    const auto angles = dalle_angles(c);
    std::vector<float> cosines(2 * angles.size()), sines(2 * angles.size());
    for (std::size_t i = 0; i < angles.size(); ++i) {
      cosines[2 * i] = cosines[2 * i + 1] = std::cos(angles[i]);
      sines[2 * i] = -std::sin(angles[i]);
      sines[2 * i + 1] = std::sin(angles[i]);
    }
    cosine = copy_of(cosines, {n, 2 * pairs});
    sine = copy_of(sines, {n, 2 * pairs});
    for (int k = 0; k < dalle_attention_kinds; ++k) {
      const auto visible = dalle_mask(c, static_cast<dalle_attention>(k));
      std::vector<float> scores(visible.size());
      for (std::size_t i = 0; i < visible.size(); ++i)
        scores[i] = visible[i] != 0 ? 0.0F : hidden_score;
      masks[static_cast<std::size_t>(k)] = copy_of(scores, {n, n});
      auto& seen_from = seen_[static_cast<std::size_t>(k)];
      for (std::int64_t p = 0; p < n; ++p) {
        seen_from.emplace_back();
        for (std::int64_t q = 0; q < n; ++q)
          if (visible[static_cast<std::size_t>(p * n + q)] != 0) seen_from.back().push_back(q);
      }
    }
    std::vector<float> inner(static_cast<std::size_t>(c.image_length() - 1));
    for (std::size_t i = 0; i < inner.size(); ++i)
      inner[i] = i % static_cast<std::size_t>(c.side) == 0 ? 0.0F : 1.0F;
    has_left = copy_of(inner, {c.image_length() - 1, 1});
  }
  /// The positions that position p sees.
  const std::vector<std::int64_t>& seen(dalle_attention kind, std::int64_t p) const {
    return seen_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(p)];
  }
  /// Channels (a, b) of a pair become (a cos - b sin, b cos + a sin). x: [..., time, head_width].
  static Tensor rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
    auto pairs = x.sizes().vec();
    pairs.back() /= 2;
    pairs.push_back(2);
    return x * cosine + x.reshape(pairs).flip(-1).view(x.sizes()) * sine;
  }

  Tensor cosine, sine;
  std::array<Tensor, dalle_attention_kinds> masks;
  Tensor has_left; ///< 0 for the first code of a row, else 1

private:
  std::array<std::vector<std::vector<std::int64_t>>, dalle_attention_kinds> seen_;
};

/// The tensors of a piece: they lie one behind the other in the layout.
struct leaves {
  std::size_t first = 0;
  tensors values;
  const Tensor& operator[](std::size_t i) const { return values[i]; }
};

/// The shared weights and the own tensors of half a layer.
struct half_layer {
  leaves shared, own;
  dalle_attention kind = dalle_attention::row;
};

/// One pass through a batch, without the parameters. x is [samples, time, dim] throughout.
class dalle_pass {
public:
  dalle_pass(const dalle_config& config, const dalle_tables& tables, const dalle_batch& batch)
      : c(config), tables_(tables), n(batch.samples) {
    // Nobody sees the padding of a caption, which is behind its last token.
    const auto absent = at::zeros({n, 1, c.positions()});
    std::vector<token_id> ids;
    for (std::int64_t s = 0; s < n; ++s) {
      ids.push_back(0);
      for (std::int64_t i = 0; i < c.text_length; ++i) {
        const auto token = batch.text[static_cast<std::size_t>(s * c.text_length + i)];
        ids.push_back(token == 0 ? c.text_vocabulary + i : token);
        if (token == 0) absent.data_ptr<float>()[s * c.positions() + i + 1] = hidden_score;
      }
      for (std::int64_t i = 0; i < c.image_length(); ++i)
        ids.push_back(batch.codes.empty()
                          ? 0
                          : c.text_tokens() +
                                batch.codes[static_cast<std::size_t>(s * c.image_length() + i)]);
    }
    ids_ = at::from_blob(ids.data(), {n, c.positions() + 1}, at::kLong).clone();
    for (std::size_t k = 0; k < masks_.size(); ++k)
      masks_[k] = (tables_.masks[k] + absent).unsqueeze(1);
  }

  Tensor inputs() const { return ids_.narrow(1, 0, c.positions()); }

  /// Half of a caption's channels come from the token before. A quarter of a code's channels comes
  /// from above, and a quarter from the left.
  Tensor shift(const Tensor& x) const {
    const auto t = c.text_length + 1, m = x.size(1) - t, half = c.dim / 2, quarter = c.dim / 4;
    const auto text = x.narrow(1, 0, t), image = x.narrow(1, t, m);
    const auto moved = [&](const Tensor& of, std::int64_t from, std::int64_t width,
                           std::int64_t by) {
      const auto some = of.narrow(2, from, width);
      const auto zeros = at::zeros({n, std::min(by, of.size(1)), width});
      return by >= of.size(1) ? zeros : at::cat({zeros, some.narrow(1, 0, of.size(1) - by)}, 1);
    };
    return at::cat({at::cat({moved(text, 0, half, 1), text.narrow(2, half, half)}, 2),
                    at::cat({moved(image, 0, quarter, c.side),
                             moved(image, quarter, quarter, 1) * tables_.has_left,
                             image.narrow(2, half, half)},
                            2)},
                   1);
  }

  static Tensor normed(const Tensor& x, const leaves& own) {
    return at::layer_norm(x, own[0].sizes(), own[0], own[1], norm_epsilon);
  }

  Tensor attention(const Tensor& x, const half_layer& q) const {
    const auto t = x.size(1), h = c.heads, w = c.head_width();
    const auto all = dalle_tables::rotate(at::linear(shift(normed(x, q.own)), q.shared[0])
                                              .view({n, t, 3, h, w})
                                              .permute({2, 0, 3, 1, 4}),
                                          tables_.cosine, tables_.sine);
    const auto part = [&](std::int64_t i) { return all.select(0, i).reshape({n * h, t, w}); };
    const auto scores =
        at::bmm(part(0) * (1 / std::sqrt(static_cast<double>(w))), part(1).transpose(1, 2))
            .view({n, h, t, t})
            .add_(mask(q.kind));
    const auto mixed = at::bmm(at::softmax(scores, -1).view({n * h, t, t}), part(2))
                           .view({n, h, t, w})
                           .transpose(1, 2)
                           .reshape({n, t, c.dim});
    return at::linear(mixed, q.shared[1], q.shared[2]) * q.own[2];
  }

  Tensor feed_forward(const Tensor& x, const half_layer& q) const {
    return after_shift(shift(normed(x, q.own)), q);
  }
  static Tensor after_shift(const Tensor& x, const half_layer& q) {
    const auto both = at::linear(x, q.shared[0], q.shared[1]).chunk(2, -1);
    return at::linear(both[0] * at::gelu(both[1]), q.shared[2], q.shared[3]) * q.own[2];
  }

  /// The cross-entropies [samples] of captions and of pictures. q: embedding, gain, bias, bias.
  std::pair<Tensor, Tensor> losses(const Tensor& y, const tensors& q) const {
    const auto x = at::layer_norm(y, {c.dim}, q[1], q[2], norm_epsilon);
    const auto part = [&](std::int64_t from, std::int64_t count, std::int64_t low,
                          std::int64_t tokens) {
      const auto logits = at::linear(x.narrow(1, from, count), q[0].narrow(0, low, tokens),
                                     q[3].narrow(0, low, tokens));
      const auto wanted = ids_.narrow(1, from + 1, count) - low;
      return at::cross_entropy_loss(logits.reshape({n * count, tokens}),
                                    wanted.reshape({n * count}), {}, at::Reduction::None)
          .view({n, count})
          .mean(1);
    };
    return {part(0, c.text_length, 0, c.text_tokens()),
            part(c.text_length, c.image_length(), c.text_tokens(), c.codes)};
  }

  /// The scores that hide positions: [samples, 1, positions, positions].
  const Tensor& mask(dalle_attention kind) const { return masks_[static_cast<std::size_t>(kind)]; }
  const Tensor& ids() const { return ids_; }
  std::int64_t samples() const { return n; }

private:
  const dalle_config& c;
  const dalle_tables& tables_;
  std::int64_t n;
  Tensor ids_; // [samples, positions + 1], with the last code, which is only a target
  std::array<Tensor, dalle_attention_kinds> masks_;
};

} // namespace shoal::learn
