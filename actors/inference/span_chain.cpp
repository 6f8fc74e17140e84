#include "actors/inference/span_chain.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

span_chain::span_chain(std::uint32_t layers, std::size_t samples, std::size_t most,
                       std::size_t width, bool keeps_outputs)
    : samples_(samples), most_(most), width_(width), keeps_outputs_(keeps_outputs) {
  SHOAL_CHECK(layers > 0 && samples > 0 && most > 0 && width > 0, "a session has a size");
  spans_.push_back({{0, layers}});
}

/// Appends the tokens of [samples, time, width] from the `skip`-th on, token by token.
void span_chain::append(std::vector<float>& to, std::span<const float> activations,
                        std::size_t time, std::size_t skip) const {
  for (auto t = skip; t < time; ++t)
    for (std::size_t s = 0; s < samples_; ++s) {
      const auto from = activations.subspan((s * time + t) * width_, width_);
      to.insert(to.end(), from.begin(), from.end());
    }
}

void span_chain::feed(std::span<const float> activations) {
  const auto time = activations.size() / row();
  auto& first = spans_.front();
  SHOAL_CHECK(activations.size() % row() == 0 && first.known + time <= most_,
              "whole tokens, and no more than the session was opened for");
  append(first.history, activations, time, 0);
  first.known += time;
}

void span_chain::shorten(one_span& span, std::size_t length) {
  span.known = std::min(span.known, length);
  span.have = std::min(span.have, length);
  span.since = std::min(span.since, length);
  span.once = std::min(span.once, length);
  span.history.resize(span.known * row());
}

void span_chain::shorten_output(std::size_t length) {
  out_known_ = std::min(out_known_, length);
  output_.clear();
  passed_.resize(std::min(passed_.size(), out_known_ * row()));
  flight_.reset(); // the tokens of its result are gone
}

void span_chain::rollback(std::size_t length) {
  SHOAL_CHECK(length <= this->length(), "a session goes back, and not forth");
  for (auto& span : spans_) shorten(span, length);
  shorten_output(length);
}

void span_chain::forget_outputs(std::size_t span, std::size_t token) {
  SHOAL_CHECK(samples_ == 1 && span < spans_.size() && token < length(),
              "outputs of known tokens are forgotten");
  spans_[span].have = 0;
  spans_[span].since = std::min(spans_[span].since, token);
  for (auto i = span + 1; i < spans_.size(); ++i) shorten(spans_[i], token);
  shorten_output(token);
}

std::vector<span_chain::computed> span_chain::computed_spans() const {
  SHOAL_CHECK(keeps_outputs_ && samples_ == 1 && std::holds_alternative<done>(next()),
              "all tokens of one sequence have passed, and were kept");
  std::vector<computed> out;
  for (std::size_t i = 0; i < spans_.size(); ++i)
    out.push_back({spans_[i].layers, *spans_[i].server, spans_[i].since, spans_[i].history,
                   i + 1 < spans_.size() ? std::span<const float>(spans_[i + 1].history)
                                         : std::span<const float>(passed_)});
  return out;
}

void span_chain::reorder(std::span<const std::int64_t> from) {
  SHOAL_CHECK(std::holds_alternative<done>(next()) && from.size() == samples_,
              "a session is reordered between its steps");
  std::vector<float> token(row());
  for (auto& span : spans_) {
    for (std::size_t t = 0; t < span.known; ++t) {
      const auto rows = span.history.begin() + static_cast<std::ptrdiff_t>(t * row());
      std::copy_n(rows, row(), token.begin());
      for (std::size_t s = 0; s < samples_; ++s)
        std::copy_n(token.begin() +
                        static_cast<std::ptrdiff_t>(static_cast<std::size_t>(from[s]) * width_),
                    width_, rows + static_cast<std::ptrdiff_t>(s * width_));
    }
    if (span.have == 0) continue;
    std::vector<std::uint32_t> order;
    for (const auto source : from) {
      const auto i = static_cast<std::size_t>(source);
      order.push_back(span.order.empty() ? static_cast<std::uint32_t>(i) : span.order[i]);
    }
    span.order = std::move(order);
  }
}

span_chain::step span_chain::next() const {
  if (flight_) return waits{};
  const auto target = length();
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const auto& span = spans_[i];
    // The next span knows at least what this one has computed.
    if (span.have == target) continue;
    if (!span.server) return needs_route{span.layers};
    request out{i, *span.server, span.session, span.layers, span.have, span.known - span.have};
    out.order = span.order;
    out.activations.resize(out.time * row());
    for (std::size_t t = 0; t < out.time; ++t)
      for (std::size_t s = 0; s < samples_; ++s)
        std::copy_n(span.history.begin() +
                        static_cast<std::ptrdiff_t>(((out.from + t) * samples_ + s) * width_),
                    width_,
                    out.activations.begin() +
                        static_cast<std::ptrdiff_t>((s * out.time + t) * width_));
    return out;
  }
  return done{};
}

void span_chain::routed(layer_span layers, std::span<const route_hop> route,
                        std::span<const std::uint64_t> sessions) {
  const auto found = std::find_if(spans_.begin(), spans_.end(),
                                  [&](const one_span& each) { return each.layers == layers; });
  SHOAL_CHECK(found != spans_.end() && !found->server, "only an open span gets a route");
  SHOAL_CHECK(!route.empty() && route.size() == sessions.size() &&
                  route.front().layers.first == layers.first &&
                  route.back().layers.last == layers.last,
              "the route covers the span");
  auto inherited = std::move(*found);
  std::vector<one_span> now;
  for (std::size_t i = 0; i < route.size(); ++i) {
    now.push_back({route[i].layers, route[i].server, sessions[i]});
    now.back().once = inherited.once;
  }
  now.front().known = inherited.known;
  now.front().history = std::move(inherited.history);
  now.back().since = std::next(found) == spans_.end() ? out_known_ : std::next(found)->known;
  const auto at = spans_.erase(found);
  spans_.insert(at, std::make_move_iterator(now.begin()), std::make_move_iterator(now.end()));
}

void span_chain::sent(const request& what, std::uint64_t token) {
  SHOAL_CHECK(!flight_, "one request at a time");
  flight_ = flight{what.span, token, what.from + what.time};
  auto& span = spans_[what.span];
  if (what.from < span.once)
    replayed_ += (std::min(span.once, what.from + what.time) - what.from) * span.layers.count();
}

bool span_chain::answered(std::uint64_t token, std::span<const float> activations) {
  if (!flight_ || flight_->token != token) return false;
  auto& span = spans_[flight_->span];
  const auto time = flight_->upto - span.have;
  if (activations.size() != time * row()) return false;
  const auto from = std::exchange(span.have, flight_->upto);
  span.once = std::max(span.once, span.have);
  span.order.clear();
  if (const auto next = flight_->span + 1; next < spans_.size()) {
    auto& after = spans_[next];
    SHOAL_CHECK(after.known >= from, "outputs come without a gap");
    append(after.history, activations, time, std::min(after.known, span.have) - from);
    after.known = std::max(after.known, span.have);
  } else {
    SHOAL_CHECK(out_known_ >= from, "outputs come without a gap");
    const auto skip = std::min(out_known_, span.have) - from;
    append(output_, activations, time, skip);
    if (keeps_outputs_) append(passed_, activations, time, skip);
    out_known_ = std::max(out_known_, span.have);
  }
  flight_.reset();
  return true;
}

void span_chain::open(one_span& span) {
  span.server.reset();
  span.session = 0;
  span.have = 0;
  span.order.clear();
}

bool span_chain::unsent(std::uint64_t token) {
  if (!flight_ || flight_->token != token) return false;
  flight_.reset();
  return true;
}

bool span_chain::lost(peer_id server) {
  bool any = false;
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (spans_[i].server != server) continue;
    if (flight_ && flight_->span == i) flight_.reset();
    open(spans_[i]);
    any = true;
  }
  return any;
}

std::optional<span_chain::lost_span> span_chain::lost_request(std::uint64_t token) {
  if (!flight_ || flight_->token != token) return std::nullopt;
  auto& span = spans_[flight_->span];
  const lost_span out{*span.server, span.session};
  open(span);
  flight_.reset();
  return out;
}

std::vector<float> span_chain::take(std::size_t count) {
  SHOAL_CHECK(out_known_ == length() && output_.size() >= count * row(),
              "the tokens have passed all layers");
  std::vector<float> out(count * row());
  const auto first = output_.size() / row() - count;
  for (std::size_t t = 0; t < count; ++t)
    for (std::size_t s = 0; s < samples_; ++s)
      std::copy_n(output_.begin() +
                      static_cast<std::ptrdiff_t>(((first + t) * samples_ + s) * width_),
                  width_, out.begin() + static_cast<std::ptrdiff_t>((s * count + t) * width_));
  output_.clear();
  return out;
}

std::vector<span_chain::holder> span_chain::holders() const {
  std::vector<holder> out;
  for (const auto& span : spans_)
    out.push_back({span.layers, span.server, span.session, span.have, span.known});
  return out;
}

std::size_t span_chain::history_bytes() const noexcept {
  std::size_t out = 0;
  for (const auto& span : spans_) out += span.history.size() * sizeof(float);
  return out;
}

} // namespace shoal::actors
