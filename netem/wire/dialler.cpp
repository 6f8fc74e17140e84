#include "netem/wire/dialler.hpp"

#include <algorithm>

namespace shoal::netem::wire {

namespace {

constexpr duration first_back_off = std::chrono::milliseconds(100);

} // namespace

duration back_off_after(unsigned attempts) {
  return std::min<duration>(first_back_off * (1u << std::min(attempts, 10u)), longest_back_off);
}

void reconnect::begin(duration now) {
  if (trying_) return;
  trying_ = true;
  confirmed_ = false;
  since_ = next_ = now;
  attempts_ = 0;
}

void reconnect::attempted(duration now) {
  next_ = now + back_off_after(++attempts_);
}

void join_list::add(std::string where) {
  entries_.emplace_back().where = std::move(where);
}

std::vector<std::size_t> join_list::due(duration now,
                                        const std::function<bool(host_index)>& is_up) const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (!entries_[i].dialling && entries_[i].next_try <= now && !is_up(entries_[i].found))
      out.push_back(i);
  return out;
}

std::optional<join_list::attempt> join_list::begin(std::size_t entry, duration now,
                                                   duration timeout) {
  if (entry >= entries_.size() || entries_[entry].dialling) return {};
  entries_[entry].next_try = now + timeout;
  return attempt{entries_[entry].where, &entries_[entry].dialling};
}

void join_list::connected(const host_link& link, host_index host) {
  for (auto& each : entries_) {
    if (each.dialling.get() != &link) continue;
    each.dialling = nullptr;
    each.found = host;
    each.attempts = 0;
    each.name_taken_since.reset();
    each.refused = refusal::none;
  }
}

bool join_list::lost(const host_link& link, refusal refused, duration now, duration limit) {
  bool is_joined = false;
  for (auto& each : entries_) {
    if (each.dialling.get() != &link) continue;
    each.dialling = nullptr;
    each.next_try = now + back_off_after(++each.attempts);
    each.refused = refused;
    is_joined = true;
    if (refused == refusal::name_taken && !each.name_taken_since) each.name_taken_since = now;
  }
  const auto is_for_good = [&](const entry& each) {
    return each.refused == refused &&
           (is_permanent(refused) ||
            (refused == refusal::name_taken && now - *each.name_taken_since > limit));
  };
  return is_joined && !was_linked_ && std::all_of(entries_.begin(), entries_.end(), is_for_good);
}

void join_list::forget(host_index host) {
  for (auto& each : entries_)
    if (each.found == host) each.found = no_host;
}

} // namespace shoal::netem::wire
