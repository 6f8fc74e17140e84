#include "actors/inference/pass_chain.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shoal::actors {

pass_chain::pass_chain(layer_span layers, std::vector<float> input, std::size_t prompt_floats)
    : layers_(layers), size_(input.size()), prompt_floats_(prompt_floats) {
  SHOAL_CHECK(layers.first < layers.last && size_ > 0, "a pass has layers and an input");
  spans_.push_back({layers, std::nullopt, std::move(input)});
}

std::optional<pass_chain::flight> pass_chain::due() const {
  if (spans_.empty() || (gradient_.empty() && !output_.empty())) return std::nullopt;
  // The last span with an input computes next. All spans before it have theirs, too.
  std::size_t at = spans_.size() - 1;
  while (spans_[at].input.empty()) --at;
  return flight{at, 0, !gradient_.empty() && at + 1 == spans_.size()};
}

pass_chain::step pass_chain::next() const {
  if (flight_) return waits{};
  const auto which = due();
  if (!which) return done{};
  const auto& span = spans_[which->span];
  if (!span.server) return needs_route{span.layers};
  return request{*span.server, span.layers, span.input,
                 which->back ? std::span<const float>(gradient_) : std::span<const float>{}};
}

void pass_chain::routed(layer_span layers, std::span<const route_hop> route) {
  const auto found = std::find_if(spans_.begin(), spans_.end(),
                                  [&](const one_span& each) { return each.layers == layers; });
  SHOAL_CHECK(found != spans_.end() && !found->server, "only an open span gets a route");
  SHOAL_CHECK(!route.empty() && route.front().layers.first == layers.first &&
                  route.back().layers.last == layers.last,
              "the route covers the span");
  std::vector<one_span> now;
  for (const auto& hop : route) now.push_back({hop.layers, hop.server, {}});
  now.front().input = std::move(found->input);
  const auto at = spans_.erase(found);
  spans_.insert(at, std::make_move_iterator(now.begin()), std::make_move_iterator(now.end()));
}

void pass_chain::sent(std::uint64_t token) {
  SHOAL_CHECK(!flight_, "one request at a time");
  const auto which = due();
  SHOAL_CHECK(which && spans_[which->span].server, "the request is that of next()");
  flight_ = flight{which->span, token, which->back};
  if (goes_back() && !which->back) repeated_ += spans_[which->span].layers.count();
}

bool pass_chain::answered(std::uint64_t token, std::vector<float> values,
                          std::span<const float> prompts) {
  if (!flight_ || flight_->token != token || values.size() != size_) return false;
  auto& span = spans_[flight_->span];
  if (flight_->back) {
    if (prompts.size() != span.layers.count() * prompt_floats_) return false;
    std::copy(prompts.begin(), prompts.end(),
              prompt_gradient_.begin() + static_cast<std::ptrdiff_t>(
                                             (span.layers.first - layers_.first) * prompt_floats_));
    gradient_ = std::move(values);
    spans_.pop_back();
  } else if (flight_->span + 1 < spans_.size()) {
    spans_[flight_->span + 1].input = std::move(values);
  } else {
    output_ = std::move(values);
  }
  flight_.reset();
  return true;
}

bool pass_chain::lost(peer_id server) {
  bool any = false;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (spans_[i].server != server) continue;
    if (flight_ && flight_->span == i) {
      repeated_ += spans_[i].layers.count();
      flight_.reset();
    }
    spans_[i].server.reset();
    any = true;
  }
  return any;
}

std::optional<peer_id> pass_chain::lost_request(std::uint64_t token) {
  if (!flight_ || flight_->token != token) return std::nullopt;
  const auto out = *spans_[flight_->span].server;
  lost(out);
  return out;
}

void pass_chain::back(std::vector<float> gradient) {
  SHOAL_CHECK(!goes_back() && !flight_ && gradient.size() == size_ && output_.size() == size_,
              "a pass goes back once, after its output is known");
  gradient_ = std::move(gradient);
  output_.clear();
  prompt_gradient_.assign(layers_.count() * prompt_floats_, 0.F);
}

} // namespace shoal::actors
