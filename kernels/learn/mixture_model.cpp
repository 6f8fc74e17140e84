#include "kernels/learn/mixture_model.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"

#include <algorithm>
#include <utility>

namespace shoal::learn {

namespace {

std::size_t cells_of(const std::vector<std::uint32_t>& grid) {
  std::size_t out = 1;
  for (const auto side : grid) out *= side;
  return out;
}

} // namespace

mixture_model::mixture_model(std::shared_ptr<const mixture_network> net,
                             std::shared_ptr<const expert_block> block, std::size_t chosen)
    : net_(std::move(net)), block_(std::move(block)), chosen_(chosen),
      cells_(cells_of(net_->shape().grid)) {
  SHOAL_CHECK(block_->width() == net_->ends().width() && chosen_ > 0 && chosen_ <= cells_,
              "experts take the rows of their network");
}

std::size_t mixture_model::number_of(std::size_t layer, const kernels::expert_place& place) const {
  std::size_t out = layer;
  for (std::size_t d = 0; d < place.size(); ++d) out = out * net_->shape().grid[d] + place[d];
  return out;
}

kernels::expert_place mixture_model::place_of(std::size_t number) const {
  const auto& grid = net_->shape().grid;
  kernels::expert_place out(grid.size());
  for (auto d = grid.size(); d-- > 0; number /= grid[d])
    out[d] = static_cast<std::uint32_t>(number % grid[d]);
  return out;
}

std::vector<float> mixture_model::initial_parameters(std::uint64_t seed) const {
  auto out = net_->initial_parameters(seed);
  out.reserve(parameter_count());
  for (std::size_t n = 0; n < experts(); ++n) {
    const auto one =
        block_->initial_parameters(stream(seed, "experts.initial", n / cells_, n % cells_).next());
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

std::vector<kernels::expert_place>
mixture_model::best_experts(std::span<const float> scores_of_row) const {
  std::vector<std::pair<double, std::size_t>> all(cells_);
  for (std::size_t n = 0; n < cells_; ++n)
    all[n] = {-net_->gate().logit(scores_of_row, place_of(n)), n};
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(chosen_), all.end());
  std::vector<kernels::expert_place> out;
  for (std::size_t i = 0; i < chosen_; ++i) out.push_back(place_of(all[i].second));
  return out;
}

result<void> mixture_model::go_forward(mixture_pass& pass,
                                       std::span<const float> parameters) const {
  const auto width = block_->width(), keys = net_->gate().keys();
  while (pass.layer() < net_->shape().layers) {
    std::vector<std::vector<expert_choice>> chosen(pass.rows());
    for (std::size_t n = 0; n < chosen.size(); ++n)
      for (auto& place : best_experts(pass.scores().subspan(n * keys, keys)))
        chosen[n].push_back({std::move(place)});
    for (const auto& [place, rows] : rows_by_expert(chosen)) {
      const auto out = block_->forward(of_expert(parameters, number_of(pass.layer(), place)),
                                       pass.inputs_of(rows));
      if (!out) return failure{out.error()};
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto first = out->begin() + static_cast<std::ptrdiff_t>(i * width);
        chosen[rows[i].row][rows[i].choice].output.assign(
            first, first + static_cast<std::ptrdiff_t>(width));
      }
    }
    pass.advance(std::move(chosen));
  }
  return {};
}

result<network_ends::judgement> mixture_model::judge(std::span<const float> parameters,
                                                     std::span<const std::byte> samples) const {
  mixture_pass pass(*net_, of_trunk(parameters), {samples.begin(), samples.end()});
  if (auto done = go_forward(pass, parameters); !done) return failure{done.error()};
  return pass.judge();
}

result<network_ends::judgement> mixture_model::add_gradient(std::span<const float> parameters,
                                                            std::span<const std::byte> samples,
                                                            std::span<float> gradient_sum) const {
  mixture_pass pass(*net_, of_trunk(parameters), {samples.begin(), samples.end()});
  if (auto done = go_forward(pass, parameters); !done) return failure{done.error()};
  const auto out = pass.leave();
  const auto width = block_->width();
  while (!pass.is_over()) {
    for (const auto& [place, rows] : rows_by_expert(pass.chosen())) {
      const auto number = number_of(pass.layer(), place);
      const auto back = block_->backward(of_expert(parameters, number), pass.inputs_of(rows),
                                         pass.gradients_of(rows), of_expert(gradient_sum, number));
      if (!back) return failure{back.error()};
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto first = back->begin() + static_cast<std::ptrdiff_t>(i * width);
        pass.chosen()[rows[i].row][rows[i].choice].gradient.assign(
            first, first + static_cast<std::ptrdiff_t>(width));
      }
    }
    pass.retreat();
  }
  const auto trunk = of_trunk(gradient_sum);
  for (std::size_t i = 0; i < trunk.size(); ++i) trunk[i] += pass.gradient()[i];
  return out;
}

} // namespace shoal::learn
