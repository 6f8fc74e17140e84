#include "kernels/learn/mixture_network.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <utility>

namespace shoal::learn {

mixture_network::mixture_network(std::shared_ptr<const network_ends> ends, mixture_shape shape)
    : ends_(std::move(ends)), shape_(std::move(shape)), gate_(ends_->width(), shape_.grid) {}

std::size_t mixture_network::parameter_count() const noexcept {
  return ends_->parameter_count() + shape_.layers * gate_.parameters();
}

std::vector<float> mixture_network::initial_parameters(std::uint64_t seed) const {
  auto out = ends_->initial_parameters(seed);
  out.resize(parameter_count());
  for (std::size_t l = 0; l < shape_.layers; ++l)
    gate_.initial(seed, l, of_gate(std::span(out), l));
  return out;
}

std::map<kernels::expert_place, std::vector<routed_row>>
rows_by_expert(const std::vector<std::vector<expert_choice>>& chosen) {
  std::map<kernels::expert_place, std::vector<routed_row>> out;
  for (std::size_t n = 0; n < chosen.size(); ++n)
    for (std::size_t c = 0; c < chosen[n].size(); ++c) out[chosen[n][c].place].push_back({n, c});
  return out;
}

mixture_pass::mixture_pass(const mixture_network& of, std::span<const float> parameters,
                           std::vector<std::byte> samples)
    : net_(of), parameters_(parameters), samples_(std::move(samples)), width_(of.ends().width()) {
  SHOAL_CHECK(parameters.size() == of.parameter_count() && !samples_.empty() &&
                  samples_.size() % of.ends().sample_bytes() == 0,
              "a pass needs all parameters and whole samples");
  enter_layer(of.ends().enter(of.of_ends(parameters), samples_));
}

void mixture_pass::enter_layer(std::vector<float> x) {
  layer_state next;
  if (layers_.size() < net_.shape().layers)
    next.scores = net_.gate().scores(net_.of_gate(parameters_, layers_.size()), x);
  next.x = std::move(x);
  at_ = layers_.size();
  layers_.push_back(std::move(next));
}

std::span<const float> mixture_pass::scores_of(std::size_t row) const {
  const auto keys = net_.gate().keys();
  return std::span(layers_[at_].scores).subspan(row * keys, keys);
}

std::vector<double> mixture_pass::weights_of(std::size_t row,
                                             const std::vector<expert_choice>& chosen) const {
  const bool switches = net_.shape().gate == gate_kind::switching;
  const auto scores = scores_of(row);
  std::vector<double> out;
  std::vector<bool> answered;
  for (const auto& each : chosen) {
    answered.push_back(!each.output.empty());
    if (!switches)
      out.push_back(net_.gate().logit(scores, each.place));
    else
      out.push_back(answered.back() ? net_.gate().probability(scores, each.place) : 0);
  }
  return switches ? out : kernels::softmax_of_answers(out, answered);
}

void mixture_pass::weights_back(std::size_t row, std::span<const double> gradient_weights,
                                std::span<float> gradient_scores_sum) const {
  const auto& gate = net_.gate();
  const auto& chosen = layers_[at_].chosen[row];
  if (net_.shape().gate == gate_kind::switching) {
    for (std::size_t c = 0; c < chosen.size(); ++c)
      if (!chosen[c].output.empty())
        gate.probability_backward(scores_of(row), chosen[c].place, gradient_weights[c],
                                  gradient_scores_sum);
    return;
  }
  const auto of_logits = kernels::softmax_backward(layers_[at_].weights[row], gradient_weights);
  for (std::size_t c = 0; c < chosen.size(); ++c)
    for (std::size_t d = 0; d < chosen[c].place.size(); ++d)
      gradient_scores_sum[gate.key_of(d, chosen[c].place[d])] += static_cast<float>(of_logits[c]);
}

void mixture_pass::advance(std::vector<std::vector<expert_choice>> chosen) {
  SHOAL_CHECK(at_ < net_.shape().layers && at_ + 1 == layers_.size() && chosen.size() == rows(),
              "the experts of a layer answer once");
  auto& here = layers_[at_];
  auto out = here.x;
  for (std::size_t n = 0; n < chosen.size(); ++n) {
    const auto& row = chosen[n];
    unanswered_ += std::ranges::all_of(row, [](const auto& e) { return e.output.empty(); }) ? 1 : 0;
    here.weights.push_back(weights_of(n, row));
    for (std::size_t c = 0; c < row.size(); ++c) {
      SHOAL_CHECK(row[c].output.empty() || row[c].output.size() == width_, "an output is a row");
      const auto w = static_cast<float>(here.weights.back()[c]);
      for (std::size_t i = 0; i < row[c].output.size(); ++i)
        out[n * width_ + i] += w * row[c].output[i];
    }
  }
  here.chosen = std::move(chosen);
  enter_layer(std::move(out));
}

network_ends::judgement mixture_pass::judge() const {
  SHOAL_CHECK(at_ == net_.shape().layers, "the rows have left the last layer");
  return net_.ends().judge(net_.of_ends(parameters_), samples_, layers_[at_].x);
}

network_ends::judgement mixture_pass::leave() {
  SHOAL_CHECK(at_ == net_.shape().layers, "the rows have left the last layer");
  gradient_.assign(net_.parameter_count(), 0);
  upstream_.assign(layers_[at_].x.size(), 0);
  const auto out = net_.ends().leave(net_.of_ends(parameters_), samples_, layers_[at_].x, upstream_,
                                     net_.of_ends(std::span(gradient_)));
  if (at_ > 0) {
    --at_;
  } else {
    net_.ends().enter_backward(net_.of_ends(parameters_), samples_, upstream_,
                               net_.of_ends(std::span(gradient_)));
    over_ = true;
  }
  return out;
}

std::vector<float> mixture_pass::gradient_of(std::size_t row, std::size_t choice) const {
  const auto w = static_cast<float>(weight_of(row, choice));
  std::vector<float> out(width_);
  for (std::size_t i = 0; i < width_; ++i) out[i] = w * upstream_[row * width_ + i];
  return out;
}

std::vector<float> mixture_pass::inputs_of(std::span<const routed_row> rows) const {
  std::vector<float> out;
  for (const auto& each : rows) {
    const auto one = row(each.row);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

std::vector<float> mixture_pass::gradients_of(std::span<const routed_row> rows) const {
  std::vector<float> out;
  for (const auto& each : rows) {
    const auto one = gradient_of(each.row, each.choice);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

void mixture_pass::retreat() {
  SHOAL_CHECK(!over_ && !upstream_.empty() && at_ < net_.shape().layers, "the pass is on its way "
                                                                         "back");
  auto& here = layers_[at_];
  const auto& gate = net_.gate();
  auto down = upstream_; // through the skip connection
  std::vector<float> of_scores(here.scores.size());
  std::vector<std::vector<kernels::expert_place>> places(rows());
  for (std::size_t n = 0; n < rows(); ++n) {
    const auto& row = here.chosen[n];
    std::vector<double> of_weights(row.size());
    for (std::size_t c = 0; c < row.size(); ++c) {
      places[n].push_back(row[c].place);
      for (std::size_t i = 0; i < row[c].output.size(); ++i)
        of_weights[c] += static_cast<double>(upstream_[n * width_ + i]) * row[c].output[i];
      for (std::size_t i = 0; i < row[c].gradient.size(); ++i)
        down[n * width_ + i] += row[c].gradient[i];
    }
    weights_back(n, of_weights, std::span(of_scores).subspan(n * gate.keys(), gate.keys()));
  }
  balance_ += gate.balance(here.scores, places, net_.shape().balance, of_scores) /
              static_cast<double>(net_.shape().layers);
  gate.backward(net_.of_gate(parameters_, at_), here.x, of_scores,
                net_.of_gate(std::span(gradient_), at_), down);
  upstream_ = std::move(down);
  here.chosen.clear();
  if (at_ > 0) {
    --at_;
    return;
  }
  net_.ends().enter_backward(net_.of_ends(parameters_), samples_, upstream_,
                             net_.of_ends(std::span(gradient_)));
  over_ = true;
}

} // namespace shoal::learn
