#include "actors/pipeline/stage_audit.hpp"

#include "actors/inference/row_difference.hpp"
#include "kernels/base/check.hpp"

#include <cmath>
#include <utility>

namespace shoal::actors {

stage_audit::stage_audit(opinion first, std::size_t width, double tolerance)
    : width_(width), tolerance_(tolerance) {
  SHOAL_CHECK(width > 0 && tolerance >= 0, "outputs have rows, and a bound");
  opinions_.push_back(std::move(first));
}

bool stage_audit::agree(const opinion& a, const opinion& b) const {
  if (a.values.size() != b.values.size() || a.values.empty()) return false;
  if (first_difference(a.values, b.values, width_, tolerance_)) return false;
  // A loss is a sum of products, so it is off by the bound of the values at most. It travels in
  // units of 1e-9.
  return std::abs(a.loss - b.loss) <= tolerance_ * std::abs(b.loss) + 2e-9;
}

stage_audit::verdict stage_audit::add(opinion next) {
  SHOAL_CHECK(found_ == verdict::open, "an audit ends once");
  const opinion* same = nullptr;
  for (const auto& each : opinions_)
    if (same == nullptr && agree(next, each)) same = &each;
  if (same != nullptr) {
    for (const auto& each : opinions_)
      if (!agree(each, *same)) wrong_.insert(each.peer);
    found_ = wrong_.empty() ? verdict::right : verdict::wrong;
  }
  opinions_.push_back(std::move(next));
  return found_;
}

stage_audit::verdict stage_audit::give_up() {
  SHOAL_CHECK(found_ == verdict::open, "an audit ends once");
  return found_ = verdict::disputed;
}

std::set<peer_id> stage_audit::peers() const {
  std::set<peer_id> out;
  for (const auto& each : opinions_) out.insert(each.peer);
  return out;
}

} // namespace shoal::actors
