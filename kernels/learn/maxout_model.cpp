#include "kernels/learn/maxout_model.hpp"

#include "kernels/learn/argument_check.hpp"
#include "kernels/learn/decoder_math.hpp"
#include "kernels/learn/even_cut.hpp"
#include "kernels/learn/weight_matrix.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::learn {

namespace {

using slots = std::vector<kernels::tensor_slot>;

void append(slots& into, kernels::tensor_slot slot) {
  slot.offset = kernels::end_of(into);
  into.push_back(std::move(slot));
}

/// The places in `wide` of the largest value of each group; of equal values the first one.
std::vector<std::size_t> largest_of(std::span<const float> wide, std::size_t group) {
  std::vector<std::size_t> out;
  out.reserve(wide.size() / group);
  for (std::size_t at = 0; at < wide.size(); at += group) {
    const auto* begin = wide.data() + at;
    out.push_back(static_cast<std::size_t>(std::max_element(begin, begin + group) - wide.data()));
  }
  return out;
}

std::vector<float> values_at(std::span<const float> x, const std::vector<std::size_t>& places) {
  std::vector<float> out;
  out.reserve(places.size());
  for (const auto at : places) out.push_back(x[at]);
  return out;
}

class maxout_model final : public layered_model {
public:
  maxout_model(std::shared_ptr<const layered_model> model, const maxout_config& maxout)
      : model_(std::move(model)), maxout_(maxout),
        pieces_(even_cut(model_->layers(), maxout.pieces)), wide_(model_->width()),
        group_(static_cast<std::size_t>(maxout.group)), narrow_(wide_ / group_) {}

  std::int64_t layers() const noexcept override { return model_->layers(); }
  std::int64_t vocabulary() const noexcept override { return model_->vocabulary(); }
  std::int64_t context() const noexcept override { return model_->context(); }
  std::size_t width() const noexcept override { return narrow_; }

  slots embedding_tensors() const override { return model_->embedding_tensors(); }

  result<slots> block_tensors(layer_range block) const override {
    const auto inside = pieces_in(block);
    if (!inside) return failure{inside.error()};
    slots out;
    for (auto piece = inside->first; piece < inside->last; ++piece) {
      if (piece > 0) append(out, expand_tensor(maxout_, piece - 1, wide()));
      auto layers = model_->block_tensors(range_of(piece));
      if (!layers) return layers;
      for (auto& slot : *layers) append(out, std::move(slot));
    }
    return out;
  }

  slots head_tensors() const override {
    auto out = model_->head_tensors();
    append(out, expand_tensor(maxout_, maxout_.pieces - 1, wide()));
    return out;
  }

  result<std::vector<float>> embed(std::span<const float> parameters, pass_shape shape,
                                   std::span<const token_id> tokens) const override {
    return model_->embed(parameters, shape, tokens);
  }
  result<void> embed_backward(std::span<const float> parameters, pass_shape shape,
                              std::span<const token_id> tokens, std::span<const float> gradient_out,
                              std::span<float> gradient_sum) const override {
    return model_->embed_backward(parameters, shape, tokens, gradient_out, gradient_sum);
  }

  result<std::vector<float>> forward(layer_range block, std::span<const float> parameters,
                                     pass_shape shape, std::span<const float> in) const override {
    const auto parts = parts_of(block, parameters, shape, in);
    if (!parts) return failure{parts.error()};
    std::vector<float> x(in.begin(), in.end());
    for (const auto& part : *parts) {
      auto out = model_->forward(part.layers, part.of_layers(parameters), shape,
                                 part.expands ? expanded(part.of_matrix(parameters), x) : x);
      if (!out) return out;
      x = narrowed(*out);
    }
    return x;
  }

  result<std::vector<float>> backward(layer_range block, std::span<const float> parameters,
                                      pass_shape shape, std::span<const float> in,
                                      std::span<const float> gradient_out,
                                      std::span<float> gradient_sum) const override {
    const auto parts = parts_of(block, parameters, shape, in);
    if (!parts) return failure{parts.error()};
    argument_check check;
    check.size("gradient of the activations", gradient_out.size(), shape.tokens() * narrow_)
        .size("sum", gradient_sum.size(), parameters.size());
    if (!check.ok()) return check.why();
    std::vector<entered> inputs;
    std::vector<float> x(in.begin(), in.end());
    for (const auto& part : *parts) {
      entered one;
      one.wide = part.expands ? expanded(part.of_matrix(parameters), x) : x;
      one.narrow = std::move(x);
      auto out = model_->forward(part.layers, part.of_layers(parameters), shape, one.wide);
      if (!out) return out;
      one.largest = largest_of(*out, group_);
      x = values_at(*out, one.largest);
      inputs.push_back(std::move(one));
    }
    std::vector<float> gradient(gradient_out.begin(), gradient_out.end());
    for (auto i = parts->size(); i-- > 0;) {
      const auto& part = (*parts)[i];
      std::vector<float> of_output(shape.tokens() * wide_);
      for (std::size_t j = 0; j < gradient.size(); ++j)
        of_output[inputs[i].largest[j]] = gradient[j];
      auto made = model_->backward(part.layers, part.of_layers(parameters), shape, inputs[i].wide,
                                   of_output, part.of_layers(gradient_sum));
      if (!made) return made;
      gradient = part.expands ? expanded_back(part.of_matrix(parameters), inputs[i].narrow, *made,
                                              part.of_matrix(gradient_sum))
                              : std::move(*made);
    }
    return gradient;
  }

  result<double> loss(std::span<const float> parameters, pass_shape shape,
                      std::span<const float> in, std::span<const token_id> targets) const override {
    const auto ends = head_of(parameters, shape, in);
    if (!ends) return failure{ends.error()};
    return model_->loss(parameters.first(*ends), shape, expanded(parameters.subspan(*ends), in),
                        targets);
  }

  result<head_gradient> loss_backward(std::span<const float> parameters, pass_shape shape,
                                      std::span<const float> in, std::span<const token_id> targets,
                                      std::span<float> gradient_sum) const override {
    const auto ends = head_of(parameters, shape, in);
    if (!ends) return failure{ends.error()};
    argument_check check;
    check.size("sum", gradient_sum.size(), parameters.size());
    if (!check.ok()) return check.why();
    auto out = model_->loss_backward(parameters.first(*ends), shape,
                                     expanded(parameters.subspan(*ends), in), targets,
                                     gradient_sum.first(*ends));
    if (!out) return out;
    out->gradient_in =
        expanded_back(parameters.subspan(*ends), in, out->gradient_in, gradient_sum.subspan(*ends));
    return out;
  }

  result<std::vector<float>> logits(std::span<const float> parameters, pass_shape shape,
                                    std::span<const float> in) const override {
    const auto ends = head_of(parameters, shape, in);
    if (!ends) return failure{ends.error()};
    return model_->logits(parameters.first(*ends), shape, expanded(parameters.subspan(*ends), in));
  }

private:
  struct piece_numbers {
    std::int64_t first = 0, last = 0;
  };

  /// A piece in the parameters of a block: the matrix before it, if there is one, and its layers.
  struct part {
    layer_range layers;
    bool expands = false;
    std::size_t matrix = 0, begin = 0, end = 0; ///< offsets: matrix, layers, end of the layers

    template <class T>
    std::span<T> of_matrix(std::span<T> of) const {
      return of.subspan(matrix, begin - matrix);
    }
    template <class T>
    std::span<T> of_layers(std::span<T> of) const {
      return of.subspan(begin, end - begin);
    }
  };

  /// The values of a piece's forward pass that its backward pass needs.
  struct entered {
    std::vector<float> narrow, wide; // the input before and after the matrix
    std::vector<std::size_t> largest;
  };

  std::int64_t wide() const noexcept { return static_cast<std::int64_t>(wide_); }
  std::size_t matrix_size() const noexcept { return wide_ * narrow_; }
  layer_range range_of(std::int64_t piece) const {
    return pieces_[static_cast<std::size_t>(piece)];
  }

  result<piece_numbers> pieces_in(layer_range block) const {
    if (const auto check = argument_check().layers(block, layers()); !check.ok())
      return check.why();
    const auto first = std::find_if(pieces_.begin(), pieces_.end(),
                                    [&](const auto& one) { return one.first == block.first; });
    const auto last = std::find_if(pieces_.begin(), pieces_.end(),
                                   [&](const auto& one) { return one.last == block.last; });
    if (first == pieces_.end() || last == pieces_.end())
      return failure{"layers: [" + std::to_string(block.first) + ", " + std::to_string(block.last) +
                     ") begins or ends where the model has no bottleneck"};
    return piece_numbers{first - pieces_.begin(), last - pieces_.begin() + 1};
  }

  result<std::vector<part>> parts_of(layer_range block, std::span<const float> parameters,
                                     pass_shape shape, std::span<const float> in) const {
    const auto inside = pieces_in(block);
    if (!inside) return failure{inside.error()};
    std::vector<part> out;
    std::size_t offset = 0;
    for (auto piece = inside->first; piece < inside->last; ++piece) {
      part one{range_of(piece), piece > 0, offset, 0, 0};
      one.begin = offset + (one.expands ? matrix_size() : 0);
      const auto tensors = model_->block_tensors(one.layers);
      if (!tensors) return failure{tensors.error()};
      offset = one.end = one.begin + kernels::end_of(*tensors);
      out.push_back(one);
    }
    auto check = shaped(shape);
    if (check.ok())
      check.size("vector of the block's parameters", parameters.size(), offset)
          .size("vector of activations", in.size(),
                shape.tokens() * (block.first == 0 ? wide_ : narrow_));
    if (!check.ok()) return check.why();
    return out;
  }

  /// The number of the inner head's parameters. The matrix lies after them.
  result<std::size_t> head_of(std::span<const float> parameters, pass_shape shape,
                              std::span<const float> in) const {
    const auto inner = kernels::end_of(model_->head_tensors());
    auto check = shaped(shape);
    if (check.ok())
      check.size("vector of the head's parameters", parameters.size(), inner + matrix_size())
          .size("vector of activations", in.size(), shape.tokens() * narrow_);
    if (!check.ok()) return check.why();
    return inner;
  }

  argument_check shaped(pass_shape shape) const {
    constexpr std::int64_t most_samples = std::int64_t{1} << 24; // sizes stay far below 2^63
    return argument_check()
        .range("samples", shape.samples, most_samples)
        .range("time", shape.time, context());
  }

  std::vector<float> narrowed(std::span<const float> x) const {
    return values_at(x, largest_of(x, group_));
  }

  /// x [rows, narrow] -> [rows, wide].
  std::vector<float> expanded(std::span<const float> matrix, std::span<const float> x) const {
    const auto rows = x.size() / narrow_;
    std::vector<float> out(rows * wide_);
    weight_matrix(matrix, wide_, narrow_).multiply(x.data(), rows, out.data());
    return out;
  }

  /// The gradient with respect to `x`. Adds that of the matrix to `sum`.
  std::vector<float> expanded_back(std::span<const float> matrix, std::span<const float> x,
                                   std::span<const float> gradient, std::span<float> sum) const {
    const auto rows = x.size() / narrow_;
    add_outer(gradient.data(), wide_, x.data(), narrow_, rows, sum.data());
    std::vector<float> out(x.size());
    weight_matrix(matrix, wide_, narrow_).multiply_back(gradient.data(), rows, out.data());
    return out;
  }

  std::shared_ptr<const layered_model> model_;
  maxout_config maxout_;
  std::vector<layer_range> pieces_;
  std::size_t wide_, group_, narrow_; // channels; narrow_ * group_ == wide_
};

} // namespace

result<std::shared_ptr<const layered_model>>
with_bottlenecks(std::shared_ptr<const layered_model> model, const maxout_config& maxout) {
  if (auto valid = validate(maxout, static_cast<std::int64_t>(model->width()), model->layers());
      !valid)
    return failure{"model: " + valid.error()};
  if (maxout.pieces == 0) return model;
  return std::shared_ptr<const layered_model>(
      std::make_shared<const maxout_model>(std::move(model), maxout));
}

} // namespace shoal::learn
