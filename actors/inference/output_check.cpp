#include "actors/inference/output_check.hpp"

#include "actors/inference/row_difference.hpp"
#include "kernels/base/check.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

std::set<peer_id> output_check::opinion::servers() const {
  std::set<peer_id> out;
  for (const auto& hop : hops) out.insert(hop.server);
  return out;
}

output_check::output_check(std::vector<computed_span> spans, std::size_t width, double tolerance)
    : spans_(std::move(spans)), width_(width), tolerance_(tolerance) {
  SHOAL_CHECK(!spans_.empty() && width > 0, "a check has something to check");
  for (const auto& span : spans_)
    SHOAL_CHECK(!span.inputs.empty() && span.inputs.size() == spans_.front().inputs.size() &&
                    span.outputs.size() == span.inputs.size() && span.inputs.size() % width == 0,
                "each span has the same tokens");
}

output_check::step output_check::next() const {
  if (done_) return *done_;
  if (flight_) return waits{};
  if (current_.hops.empty()) {
    std::set<peer_id> except{now().server};
    for (const auto& other : others_) except.merge(other.servers());
    return needs_route{now().layers, std::move(except), !others_.empty()};
  }
  const auto& hop = current_.hops[current_.at];
  return request{hop.server, hop.layers, current_.at == 0 ? now().inputs : current_.values};
}

void output_check::routed(std::span<const route_hop> route) {
  SHOAL_CHECK(!done_ && !flight_ && current_.hops.empty() && !route.empty() &&
                  route.front().layers.first == now().layers.first &&
                  route.back().layers.last == now().layers.last,
              "the route covers the layers that are checked");
  current_.hops.assign(route.begin(), route.end());
}

void output_check::unroutable() {
  SHOAL_CHECK(!done_ && !flight_ && current_.hops.empty(), "the check needs a route");
  if (!others_.empty()) {
    done_ = done{verdict::disputed, {}, {}, unchecked_};
    return;
  }
  ++unchecked_;
  end_span();
}

void output_check::sent(std::uint64_t token) {
  SHOAL_CHECK(!flight_ && !current_.hops.empty(), "one request at a time");
  flight_ = token;
}

bool output_check::answered(std::uint64_t token, std::span<const float> activations) {
  if (flight_ != token || activations.size() != now().inputs.size()) return false;
  flight_.reset();
  current_.values.assign(activations.begin(), activations.end());
  ++current_.at;
  if (current_.is_complete()) compare();
  return true;
}

std::optional<peer_id> output_check::asked(std::uint64_t token) const {
  if (flight_ != token) return std::nullopt;
  return current_.hops[current_.at].server;
}

bool output_check::lost(peer_id server) {
  // An opinion that is complete still counts after its server has died.
  if (done_ || !current_.servers().contains(server)) return false;
  current_ = {};
  flight_.reset();
  return true;
}

void output_check::compare() {
  auto given = std::exchange(current_, {});
  const auto differs = first_difference(now().outputs, given.values, width_, tolerance_);
  if (!differs && others_.empty()) return end_span();
  const auto same = std::find_if(others_.begin(), others_.end(), [&](const opinion& other) {
    return !first_difference(other.values, given.values, width_, tolerance_);
  });
  if (differs && same == others_.end()) {
    others_.push_back(std::move(given));
    return;
  }
  done_ = done{verdict::wrong, {}, {}, unchecked_};
  for (auto other = others_.begin(); other != others_.end(); ++other)
    if (other != same && other->hops.size() == 1) done_->servers.merge(other->servers());
  if (!differs) return;
  done_->from = done::place{span_, *differs};
  if (*differs >= now().since) done_->servers.insert(now().server);
}

void output_check::end_span() {
  others_.clear();
  if (++span_ == spans_.size()) done_ = done{verdict::right, {}, {}, unchecked_};
}

double check_tolerance(kernels::codec codec) {
  switch (codec) {
  case kernels::codec::none:
    return 1e-3;
  case kernels::codec::float16:
    return 1e-2;
  case kernels::codec::bfloat16:
    return 3e-2;
  default:
    return 1e-1;
  }
}

} // namespace shoal::actors
