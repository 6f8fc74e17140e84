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

expert_dictionary::expert_dictionary(const found& answer, const host& here) {
  for (const auto& each : answer.records) {
    const auto coordinates = unpack_coordinates(each->value);
    if (!coordinates || !each->address) continue;
    const auto peer = here.peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address));
    if (peer == 0) continue;
    for (const auto& one : *coordinates)
      entries_.push_back({one.at, {peer, each->address, one.steps, each->expires_utc_ns}});
  }
}

std::vector<std::uint32_t> expert_dictionary::alive(const expert_hosts& hosts, std::int64_t utc_ns,
                                                    duration now) const {
  std::vector<std::uint32_t> out;
  for (const auto& each : entries_)
    if (hosts.counts(each.holder.peer, each.holder.expires_utc_ns, utc_ns, now))
      out.push_back(each.at);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<expert_holder> expert_dictionary::holder(std::uint32_t at, const expert_hosts& hosts,
                                                       std::int64_t utc_ns, duration now) const {
  const expert_holder* best = nullptr;
  for (const auto& [coordinate, holder] : entries_) {
    if (coordinate != at || !hosts.counts(holder.peer, holder.expires_utc_ns, utc_ns, now))
      continue;
    if (best == nullptr || holder.steps > best->steps ||
        (holder.steps == best->steps && holder.peer < best->peer))
      best = &holder;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

void expert_dictionary::drop(peer_id host) {
  std::erase_if(entries_, [&](const entry& each) { return each.holder.peer == host; });
}
void expert_dictionary::drop(peer_id host, std::uint32_t at) {
  std::erase_if(entries_,
                [&](const entry& each) { return each.at == at && each.holder.peer == host; });
}

bool expert_cache::needs(const prefix& which, duration now) const {
  const auto found = dictionaries_.find(which);
  if (found == dictionaries_.end()) return true;
  const auto& [what, when] = found->second;
  return now >= when + (what.empty() ? options_.fresh_empty : options_.fresh);
}

void expert_cache::read(const prefix& which, const found& answer, const host& here, duration now) {
  dictionaries_.insert_or_assign(which, one_read{expert_dictionary(answer, here), now});
}

std::vector<std::uint32_t> expert_cache::alive(const prefix& which, std::int64_t utc_ns,
                                               duration now) const {
  const auto found = dictionaries_.find(which);
  if (found == dictionaries_.end()) return {};
  return found->second.what.alive(hosts_, utc_ns, now);
}

std::optional<expert_holder> expert_cache::holder(const expert_id& which, std::int64_t utc_ns,
                                                  duration now) const {
  if (which.place.empty()) return std::nullopt;
  const auto found = dictionaries_.find(parent_of(which));
  if (found == dictionaries_.end()) return std::nullopt;
  return found->second.what.holder(which.place.back(), hosts_, utc_ns, now);
}

void expert_cache::moved(const expert_id& which, peer_id from) {
  if (which.place.empty()) return;
  if (const auto found = dictionaries_.find(parent_of(which)); found != dictionaries_.end())
    found->second.what.drop(from, which.place.back());
}

void expert_cache::drop_old(std::int64_t utc_ns, duration now) {
  std::erase_if(dictionaries_,
                [&](const auto& each) { return now >= each.second.when + 4 * options_.fresh; });
  hosts_.drop_old(utc_ns, now);
}

} // namespace shoal::actors
