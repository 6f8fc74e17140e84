#include "actors/experts/expert_record.hpp"

#include "kernels/base/check.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::actors {

namespace {

constexpr std::size_t most_coordinates = 65536;

} // namespace

expert_id parent_of(expert_id which) {
  SHOAL_CHECK(!which.place.empty(), "a layer has no parent");
  which.place.pop_back();
  return which;
}

std::string to_text(const expert_id& which) {
  return fmt::format("{}{}{}", which.layer, which.place.empty() ? "" : ".",
                     fmt::join(which.place, "."));
}

std::string prefix_key(std::string_view model, std::uint32_t layer, const expert_place& prefix) {
  return fmt::format("experts.{}.{}", model, to_text({layer, prefix}));
}
std::string expert_hosts_key(std::string_view model) {
  return fmt::format("expert_hosts.{}", model);
}
std::string revival_key(std::string_view model, const expert_id& which) {
  return fmt::format("revival.{}.{}", model, to_text(which));
}

payload pack_coordinates(const std::vector<live_coordinate>& what) {
  std::vector<std::byte> bytes(what.size() * 12);
  auto* at = bytes.data();
  for (const auto& each : what) {
    std::memcpy(at, &each.at, 4);
    std::memcpy(at + 4, &each.steps, 8);
    at += 12;
  }
  return payload{std::move(bytes)};
}

std::optional<std::vector<live_coordinate>> unpack_coordinates(const payload& from) {
  if (from.is_size_only() || from.size() % 12 != 0 || from.size() / 12 > most_coordinates)
    return std::nullopt;
  std::vector<live_coordinate> out(from.size() / 12);
  const auto* at = from.bytes().data();
  for (auto& each : out) {
    std::memcpy(&each.at, at, 4);
    std::memcpy(&each.steps, at + 4, 8);
    at += 12;
  }
  return out;
}

bool expert_cache::needs(const prefix& which, duration now) const {
  const auto found = dictionaries_.find(which);
  if (found == dictionaries_.end()) return true;
  const auto& one = found->second;
  return now >= one.read + (one.entries.empty() ? options_.fresh_empty : options_.fresh);
}

void expert_cache::read(const prefix& which, const found& answer, const host& here, duration now) {
  dictionary next{{}, now};
  for (const auto& each : answer.records) {
    const auto coordinates = unpack_coordinates(each->value);
    if (!coordinates || !each->address) continue;
    const auto peer = here.peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address));
    if (peer == 0) continue;
    for (const auto& one : *coordinates)
      next.entries.push_back({one.at, {peer, each->address, one.steps, each->expires_utc_ns}});
  }
  dictionaries_.insert_or_assign(which, std::move(next));
}

bool expert_cache::counts(const entry& one, std::int64_t utc_ns, duration now) const {
  if (one.holder.expires_utc_ns <= utc_ns || silent_.contains(one.holder.peer)) return false;
  const auto gone = gone_.find(one.holder.peer);
  if (gone != gone_.end() && one.holder.expires_utc_ns <= gone->second) return false;
  const auto banned = banned_until_.find(one.holder.peer);
  return banned == banned_until_.end() || banned->second <= now;
}

std::vector<std::uint32_t> expert_cache::alive(const prefix& which, std::int64_t utc_ns,
                                               duration now) const {
  std::vector<std::uint32_t> out;
  const auto found = dictionaries_.find(which);
  if (found == dictionaries_.end()) return out;
  for (const auto& each : found->second.entries)
    if (counts(each, utc_ns, now)) out.push_back(each.at);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<expert_holder> expert_cache::holder(const expert_id& which, std::int64_t utc_ns,
                                                  duration now) const {
  if (which.place.empty()) return std::nullopt;
  const auto found = dictionaries_.find(parent_of(which));
  if (found == dictionaries_.end()) return std::nullopt;
  const entry* best = nullptr;
  for (const auto& each : found->second.entries) {
    if (each.at != which.place.back() || !counts(each, utc_ns, now)) continue;
    if (best == nullptr || each.holder.steps > best->holder.steps ||
        (each.holder.steps == best->holder.steps && each.holder.peer < best->holder.peer))
      best = &each;
  }
  return best == nullptr ? std::nullopt : std::optional(best->holder);
}

void expert_cache::failed(peer_id host, duration now, unsigned bans) {
  auto& until = banned_until_[host];
  until = std::max(until, now + bans * options_.ban);
  silent_.erase(host);
}

void expert_cache::moved(const expert_id& which, peer_id from) {
  if (which.place.empty()) return;
  if (const auto found = dictionaries_.find(parent_of(which)); found != dictionaries_.end())
    std::erase_if(found->second.entries, [&](const entry& each) {
      return each.at == which.place.back() && each.holder.peer == from;
    });
}

void expert_cache::drop_old(duration now) {
  std::erase_if(dictionaries_,
                [&](const auto& each) { return now >= each.second.read + 4 * options_.fresh; });
  std::erase_if(banned_until_, [&](const auto& each) { return each.second <= now; });
}

} // namespace shoal::actors
