#include "actors/pipeline/known_stages.hpp"

#include "actors/pipeline/staged_workload.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

namespace {
// The states of this epoch and the next one are of use.
constexpr std::size_t kept_ids = 4;
} // namespace

known_stages::change known_stages::learn(peer_id whom, const stage_record& record,
                                         const caf::actor& address) {
  change out;
  const auto [at, is_new] = peers_.try_emplace(whom);
  auto& one = at->second;
  out.is_new = is_new;
  if (!is_new && one.stage != record.stage) out.left = one.stage;
  one = {address, record.stage, record.epoch, record.state};
  auto& ids = ids_[record.epoch];
  ids.resize(stages_);
  // If a stage has split, its first record counts.
  if (ids[record.stage].is_zero()) ids[record.stage] = record.state;
  if (ids_.size() > kept_ids) ids_.erase(ids_.begin());
  return out;
}

const known_stages::peer* known_stages::find(peer_id whom) const {
  const auto found = peers_.find(whom);
  return found == peers_.end() ? nullptr : &found->second;
}

peer_id known_stages::peer_at(const caf::actor_addr& address) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const auto& one) {
    return caf::actor_cast<caf::actor_addr>(one.second.address) == address;
  });
  return found == peers_.end() ? 0 : found->first;
}

const known_stages::peer* known_stages::donor(std::uint32_t stage, std::uint64_t epoch) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const auto& one) {
    return one.second.stage == stage && one.second.epoch == epoch;
  });
  return found == peers_.end() ? nullptr : &found->second;
}

std::vector<std::optional<std::uint64_t>> known_stages::highest_epochs() const {
  std::vector<std::optional<std::uint64_t>> out(stages_);
  for (const auto& [whom, one] : peers_)
    out[one.stage] = std::max(out[one.stage].value_or(0), one.epoch);
  return out;
}

bool known_stages::stepped(std::uint32_t stage, std::uint64_t epoch) const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& one) {
    return one.second.stage == stage && one.second.epoch > epoch;
  });
}

state_id known_stages::whole_at(std::uint64_t epoch) const {
  const auto found = ids_.find(epoch);
  if (found == ids_.end() || std::any_of(found->second.begin(), found->second.end(),
                                         [](const auto& one) { return one.is_zero(); }))
    return {};
  return whole_state_id(found->second);
}

} // namespace shoal::actors
