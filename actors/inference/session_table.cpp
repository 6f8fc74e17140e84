#include "actors/inference/session_table.hpp"

#include "kernels/base/check.hpp"

namespace shoal::actors {

const char* to_string(refusal why) noexcept {
  switch (why) {
  case refusal::none:
    return "nothing";
  case refusal::unknown_session:
    return "the server does not know the session";
  case refusal::no_cache:
    return "the server has not enough cache left";
  case refusal::too_many:
    return "the server has too many sessions";
  case refusal::wrong_layers:
    return "the server does not hold these layers";
  case refusal::wrong_position:
    return "the step does not follow the session's tokens";
  case refusal::wrong_values:
    return "the activations are not those of a step";
  case refusal::drains:
    return "the server is about to leave";
  }
  return "an unknown reason";
}

refusal session_table::may_open(const key& which, layer_span layers, std::size_t samples,
                                std::size_t most) const {
  if (sessions_.contains(which)) return refusal::too_many;
  // The products of limits that messages can hold fit into 64 bits: 16 + 24 + 12 bits.
  if (samples == 0 || most == 0 || samples > 1 << 16 || most > 1 << 24)
    return refusal::wrong_position;
  const auto cost = static_cast<std::uint64_t>(samples) * most * layers.count();
  if (cost > left()) return refusal::no_cache;
  if (sessions_.size() >= limits_.sessions) return refusal::too_many;
  const auto mine = shares_.find(which.first);
  if (mine == shares_.end()) return cost > limits_.cache_of_one ? refusal::no_cache : refusal::none;
  if (mine->second.sessions >= limits_.sessions_of_one) return refusal::too_many;
  return mine->second.cache + cost > limits_.cache_of_one ? refusal::no_cache : refusal::none;
}

session_table::session& session_table::open(const key& which, session what, duration now) {
  SHOAL_CHECK(may_open(which, what.layers, what.samples, what.most) == refusal::none,
              "a session opens within the limits");
  what.used = now;
  used_ += what.cost();
  auto& mine = shares_[which.first];
  ++mine.sessions;
  mine.cache += what.cost();
  return sessions_.emplace(which, std::move(what)).first->second;
}

session_table::session* session_table::find(const key& which) {
  const auto found = sessions_.find(which);
  return found == sessions_.end() ? nullptr : &found->second;
}

session_table::table::iterator session_table::erase(table::iterator which) {
  used_ -= which->second.cost();
  const auto mine = shares_.find(which->first.first);
  mine->second.cache -= which->second.cost();
  if (--mine->second.sessions == 0) shares_.erase(mine);
  return sessions_.erase(which);
}

void session_table::close(const key& which) {
  if (const auto found = sessions_.find(which); found != sessions_.end()) erase(found);
}

std::size_t session_table::expire(duration now) {
  std::size_t out = 0;
  for (auto at = sessions_.begin(); at != sessions_.end();)
    if (!at->second.busy && now - at->second.used >= limits_.idle) {
      at = erase(at);
      ++out;
    } else {
      ++at;
    }
  return out;
}

} // namespace shoal::actors
