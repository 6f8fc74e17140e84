#include "actors/pipeline/known_stages.hpp"

#include "actors/pipeline/staged_workload.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

namespace {
// The states of this epoch and the next one are of use.
constexpr std::size_t kept_ids = 4;
} // namespace

known_stages::change known_stages::learn(peer_id whom, member_id member, const stage_record& record,
                                         const caf::actor& address, std::int64_t expires) {
  change out;
  const auto [at, is_new] = peers_.try_emplace(whom);
  auto& one = at->second;
  out.is_new = is_new;
  if (!is_new && one.stage != record.stage) out.left = one.stage;
  one = {address, member, record.stage, record.epoch, record.state, record.content, expires};
  gone_.erase(whom);
  return out;
}

std::uint64_t known_stages::most_epoch(std::uint32_t stage) const {
  std::vector<std::uint64_t> others;
  for (std::uint32_t s = 0; s < stages_; ++s)
    if (s != stage && claimed_[s]) others.push_back(*claimed_[s]);
  return most_epoch_beside(std::move(others));
}

stage_votes known_stages::votes_of(std::uint32_t stage) const {
  const auto most = most_epoch(stage);
  stage_votes out;
  for (const auto& [whom, one] : peers_)
    if (one.stage == stage && one.epoch <= most)
      out.add(one.member, {one.epoch, one.state, one.content});
  return out;
}

void known_stages::count(std::uint32_t stage) {
  stage_votes all;
  for (const auto& [whom, one] : peers_)
    if (one.stage == stage) all.add(one.member, {one.epoch, one.state, one.content});
  claimed_[stage] = all.reached();
  if (!claimed_[stage]) return;
  for (const auto& [whom, one] : peers_) {
    if (one.stage != stage || one.epoch > *claimed_[stage] + 1) continue;
    auto& all = ids_[one.epoch];
    all.resize(stages_);
    auto& named = all[stage];
    const auto same = [&, &what = one.state](const auto& each) { return each.id == what; };
    auto known = std::find_if(named.begin(), named.end(), same);
    if (known == named.end()) known = named.insert(known, {one.state, {}});
    known->by.insert(one.member);
    if (ids_.size() > kept_ids) ids_.erase(ids_.begin());
  }
  whole_.erase(whole_.begin(), whole_.lower_bound(ids_.begin()->first));
}

void known_stages::forget(peer_id whom) {
  const auto found = peers_.find(whom);
  if (found == peers_.end()) return;
  gone_[whom] = found->second.expires;
  peers_.erase(found);
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

std::vector<peer_id> known_stages::donors(std::uint32_t stage, std::uint64_t epoch) const {
  const auto leading = votes_of(stage).leading();
  std::vector<peer_id> out;
  for (const auto& [whom, one] : peers_)
    if (one.stage == stage && one.epoch == epoch &&
        leading == announced_state{epoch, one.state, one.content})
      out.push_back(whom);
  return out;
}

std::vector<std::optional<std::uint64_t>> known_stages::epochs() const {
  std::vector<std::optional<std::uint64_t>> out;
  for (std::uint32_t s = 0; s < stages_; ++s) out.push_back(votes_of(s).reached());
  return out;
}

bool known_stages::stepped(std::uint32_t stage, std::uint64_t epoch) const {
  const auto reached = votes_of(stage).reached();
  return reached && *reached > epoch;
}

state_id known_stages::whole_at(std::uint64_t epoch) {
  if (const auto known = whole_.find(epoch); known != whole_.end()) return known->second;
  const auto found = ids_.find(epoch);
  if (found == ids_.end()) return {};
  std::vector<state_id> ids;
  for (const auto& named : found->second) {
    // If a stage has split, the state that was named first counts.
    const auto most =
        std::max_element(named.begin(), named.end(),
                         [](const auto& a, const auto& b) { return a.by.size() < b.by.size(); });
    if (most == named.end()) return {};
    ids.push_back(most->id);
  }
  return whole_[epoch] = whole_state_id(ids);
}

} // namespace shoal::actors
