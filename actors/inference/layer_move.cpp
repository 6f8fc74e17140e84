#include "actors/inference/layer_move.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>

namespace shoal::actors {

namespace {
// The pauses between the promises to one member.
constexpr unsigned most_pause_doublings = 6;
} // namespace

layer_move::layer_move(move_rules by) : rules_(by) {
  SHOAL_CHECK(by.timeout < by.promise, "a promise outlasts the move that relies on it");
}

std::vector<peer_id> layer_move::begin(layer_span mine, layer_span target,
                                       std::span<const placed_server> others, duration now) {
  SHOAL_CHECK(may_begin(now), "a server makes one move at a time, and keeps its promises");
  target_ = target;
  mine_ = mine;
  asked_at_ = now;
  ++round_;
  for (const auto& each : others)
    if (each.layers.first < mine.last && mine.first < each.layers.last)
      asked_.emplace(each.peer, std::nullopt);
  std::vector<peer_id> out;
  for (const auto& [peer, promised] : asked_) out.push_back(peer);
  return out;
}

bool layer_move::promise(const member_id& who, duration now) {
  std::erase_if(made_, [&](const auto& one) {
    return now >= one.second.next + rules_.promise * (1U << most_pause_doublings);
  });
  if (target_) return false;
  auto& made = made_[who];
  if (now < made.next) return false;
  made.next = now + rules_.promise * (2U << std::min(made.count++, most_pause_doublings));
  promised_until_ = std::max(promised_until_, now + rules_.promise);
  return true;
}

bool layer_move::promised(peer_id from, std::uint64_t round, layer_span theirs) {
  const auto found = asked_.find(from);
  if (!target_ || round != round_ || found == asked_.end()) return false;
  found->second = theirs;
  return true;
}

std::optional<layer_span> layer_move::due(duration now) const {
  if (!target_ || now > asked_at_ + rules_.timeout) return std::nullopt;
  for (auto layer = mine_.first; layer < mine_.last; ++layer)
    if (std::none_of(asked_.begin(), asked_.end(), [&](const auto& each) {
          return each.second && each.second->first <= layer && layer < each.second->last;
        }))
      return std::nullopt;
  return target_;
}

void layer_move::end() {
  target_.reset();
  asked_.clear();
}

} // namespace shoal::actors
