#include "actors/pipeline/known_trainers.hpp"

#include <algorithm>
#include <cstddef>

namespace shoal::actors {

namespace {
// A trainer opens its part again when a peer with its gradients dies.
constexpr unsigned most_openings = 4;
} // namespace

void known_trainers::told(peer_id whom, member_id member, const trainer_record& record) {
  known_[whom] = {member, record};
}

void known_trainers::read(records all) {
  for (auto& [whom, one] : all)
    if (const auto told = known_.find(whom);
        told != known_.end() && told->second.second.version > one.second.version)
      one.second = told->second.second;
  known_ = std::move(all);
}

std::map<member_id, bool> known_trainers::closed_by(std::uint64_t epoch) const {
  std::map<member_id, bool> out;
  for (const auto& [whom, one] : known_) {
    if (!has_batch(one.second)) continue;
    auto& all = out.try_emplace(one.first, true).first->second;
    all = all && one.second.closed > epoch;
  }
  return out;
}

bool known_trainers::is_closed(std::uint64_t epoch, duration now) {
  due_.reset();
  const auto closed = closed_by(epoch);
  if (closed.empty()) return false;
  for (const auto& [member, all] : closed) {
    auto& own = openings_[member];
    if (own.was_closed && !all && own.count < most_openings) {
      ++own.count;
      own.since = now;
    }
    own.was_closed = all;
  }
  const auto count = static_cast<std::size_t>(
      std::count_if(closed.begin(), closed.end(), [](const auto& one) { return one.second; }));
  if (count == closed.size()) return true;
  if (!half_since_) {
    if (2 * count < closed.size()) return false;
    half_since_ = now;
  }
  const auto most = std::max(least_wait_, *half_since_ - begun_);
  duration last{};
  for (const auto& [member, all] : closed) {
    if (all) continue;
    const auto wait = patience_[member].wait(most);
    last = std::max(last, std::max(*half_since_, openings_[member].since) + wait);
  }
  if (now >= last) return true;
  due_ = last;
  return false;
}

std::uint64_t known_trainers::samples(std::uint64_t epoch, std::uint64_t most) const {
  std::uint64_t out = 0;
  for (const auto& [whom, one] : known_)
    if (has_batch(one.second) && one.second.closed > epoch)
      out += std::min(one.second.samples, most);
  return out;
}

void known_trainers::stepped(std::uint64_t epoch) {
  for (const auto& [member, all] : closed_by(epoch))
    all ? patience_[member].kept() : patience_[member].missed();
}

void known_trainers::begin_batch(duration now) {
  begun_ = now;
  half_since_.reset();
  due_.reset();
  openings_.clear();
}

} // namespace shoal::actors
