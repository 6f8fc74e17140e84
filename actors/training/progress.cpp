#include "actors/training/progress.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>
#include <utility>

namespace shoal::actors {

namespace {

// Rounds in a row that a member may stay away from.
constexpr unsigned most_absences = 2;
// No swarm gets there; sums of epochs cannot wrap.
constexpr std::uint64_t furthest_epoch = std::uint64_t{1} << 53;

using packed_progress = std::array<std::uint64_t, 9>;

// The flags: bit 0 arriving, bit 1 unreachable, bits 2 and 3 part, bits 8 to 15 reach, bits from 16
// on computes_for_ms.
constexpr std::uint64_t most_ms = 0xffffffffffffu;
std::uint64_t flags_of(const progress& p) {
  return (p.arriving != 0 ? 1 : 0) | (p.unreachable != 0 ? 2 : 0) |
         static_cast<std::uint64_t>(p.part) << 2 | static_cast<std::uint64_t>(p.reach) << 8 |
         std::min(p.computes_for_ms, most_ms) << 16;
}

bool on(const progress& what, const branch& which) {
  return what.epoch == which.epoch && what.state == which.state;
}

bool before(const std::pair<peer_id, progress_table::entry>& one, peer_id peer) {
  return one.first < peer;
}

/// Members without a record are forgotten, so that the map cannot outgrow the table. A round may
/// have many members, so the records are read once for all of them.
template <class Map, class Entries>
void forget_without_record(Map& of, const Entries& entries) {
  if (of.empty()) return;
  std::set<member_id> present;
  for (const auto& [peer, e] : entries) present.insert(e.member);
  std::erase_if(of, [&](const auto& one) { return !present.contains(one.first); });
}

} // namespace

payload progress::pack() const {
  packed_progress words{epoch,   state.high,      state.low,
                        history, samples,         millisamples_per_second,
                        rate_up, flags_of(*this), contribution};
  std::vector<std::byte> bytes(sizeof words);
  std::memcpy(bytes.data(), words.data(), sizeof words);
  return payload{std::move(bytes)};
}

std::optional<progress> progress::unpack(const payload& bytes) {
  packed_progress words;
  if (bytes.size() != sizeof words || bytes.is_size_only()) return std::nullopt;
  std::memcpy(words.data(), bytes.bytes().data(), sizeof words);
  return progress{words[0],
                  {words[1], words[2]},
                  words[3],
                  words[4],
                  words[5],
                  words[6],
                  words[7] & 1,
                  words[7] >> 1 & 1,
                  (words[7] >> 8 & 0xff) < reach_names.size()
                      ? static_cast<actors::reach>(words[7] >> 8 & 0xff)
                      : actors::reach::unknown,
                  words[7] >> 16,
                  words[8],
                  static_cast<round_part>(words[7] >> 2 & 3)};
}

const progress_table::entry* progress_table::find(peer_id peer) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), peer, before);
  return at == entries_.end() || at->first != peer ? nullptr : &at->second;
}

void progress_table::replace(const std::vector<shared<record>>& records, peer_id self, duration now,
                             const owner_of& of, const member_id& self_member) {
  ++looks_;
  looked_ = now;
  bool new_owners = false;
  for (const auto& each : records) {
    const auto& r = *each;
    peer_id id = 0;
    auto [end, error] = std::from_chars(r.subkey.data(), r.subkey.data() + r.subkey.size(), id, 16);
    if (error != std::errc{} || end != r.subkey.data() + r.subkey.size() || id == self ||
        !r.address || distrusted_.contains(id))
      continue;
    auto what = progress::unpack(r.value);
    if (!what || what->epoch > furthest_epoch) continue;
    what->samples = std::min(what->samples, most_.samples);
    what->contribution = std::min(what->contribution, most_.samples);
    what->computes_for_ms = std::min(what->computes_for_ms, most_.computes_for_ms);
    auto at = std::lower_bound(entries_.begin(), entries_.end(), id, before);
    const bool fresh = at == entries_.end() || at->first != id;
    member_id member;
    if (of && (fresh || at->second.address != r.address)) {
      const auto who = of(r.address);
      if (who.peer != id || who.member == self_member) continue;
      member = who.member;
      new_owners = true;
    } else if (!fresh) {
      member = at->second.member;
    }
    if (fresh) at = entries_.insert(at, {id, {}});
    auto& mine = at->second;
    if (fresh || mine.what != *what) mine.changed = now;
    if (fresh || mine.what.samples != what->samples) {
      mine.counted = now;
      mine.counted_expires_utc_ns = r.expires_utc_ns;
    }
    mine.what = *what;
    if (mine.address != r.address) mine.address = r.address;
    mine.member = member;
    mine.expires_utc_ns = r.expires_utc_ns;
    mine.look = looks_;
  }
  std::erase_if(entries_, [this](const auto& one) { return one.second.look != looks_; });
  if (new_owners) keep_one_of_each_member();
}

void progress_table::distrust(peer_id peer) {
  distrusted_.insert(peer);
  std::erase_if(entries_, [&](const auto& one) { return one.first == peer; });
}

/// The record of a member's latest incarnation expires last.
void progress_table::keep_one_of_each_member() {
  std::map<member_id, std::pair<std::int64_t, peer_id>> latest;
  for (const auto& [peer, e] : entries_) {
    const auto mine = std::pair(e.expires_utc_ns, peer);
    auto& best = latest.try_emplace(e.member, mine).first->second;
    best = std::max(best, mine);
  }
  std::erase_if(entries_,
                [&](const auto& one) { return latest.at(one.second.member).second != one.first; });
}

void progress_table::took_part(const std::set<member_id>& members, const state_id& state) {
  for (const auto& member : members) absences_.erase(member);
  for (const auto& [peer, e] : entries_)
    if (!e.member.is_zero() && e.what.state == state && e.what.samples > 0 &&
        !members.contains(e.member))
      ++absences_[e.member];
  forget_without_record(absences_, entries_);
}

void progress_table::certified(const std::map<member_id, std::uint64_t>& weights,
                               const member_id& self, double own_speed) {
  const auto own = weights.find(self);
  if (own == weights.end() || own->second == 0 || own_speed <= 0) return;
  const auto scale = own_speed / static_cast<double>(own->second);
  fastest_ = own_speed;
  for (const auto& [member, weight] : weights) {
    if (member == self) continue;
    const auto now_shown = scale * static_cast<double>(weight);
    const auto [known, is_new] = shown_.try_emplace(member, now_shown);
    // One round in which a member had little does not say that it is slow.
    if (!is_new) known->second = std::max(now_shown, known->second / 2);
    fastest_ = std::max(fastest_, known->second);
  }
  forget_without_record(shown_, entries_);
}

double progress_table::speed_of(const entry& of) const {
  const auto said = static_cast<double>(of.what.millisamples_per_second) / 1000;
  if (fastest_ <= 0 || of.member.is_zero()) return said;
  const auto known = shown_.find(of.member);
  return std::min(said, most_ratio * (known == shown_.end() ? fastest_ : known->second));
}

bool progress_table::counts(const entry& of) const {
  if (absences_.empty()) return true;
  const auto known = absences_.find(of.member);
  return known == absences_.end() || known->second < most_absences;
}

branch progress_table::leading(const branch& own, const std::optional<branch>& next,
                               std::size_t enough) const {
  const auto furthest = median_epoch(own.epoch) + 1;
  const auto is_claim = [&](const entry& e) {
    return e.what.arriving == 0 && e.what.epoch <= furthest;
  };
  const auto branch_in = [](const entry& e) {
    return branch{e.what.epoch, e.what.history, e.what.state};
  };
  // Mostly, all peers are on one branch, and nothing has to be counted.
  const bool some_lead = std::any_of(entries_.begin(), entries_.end(), [&](const auto& one) {
    return is_claim(one.second) && branch_in(one.second).leads(own);
  });
  if (!some_lead) return own;
  std::map<std::pair<std::uint64_t, state_id>, std::size_t> supporters;
  ++supporters[{own.epoch, own.state}];
  for (const auto& [peer, e] : entries_)
    if (is_claim(e)) ++supporters[{e.what.epoch, e.what.state}];
  std::size_t most = 0;
  for (const auto& [where, count] : supporters) most = std::max(most, count);
  const auto counts = [&](const branch& which) {
    const auto count = supporters.at({which.epoch, which.state});
    return 2 * count > most || count >= enough || next == which;
  };
  auto best = own;
  for (const auto& [peer, e] : entries_)
    if (is_claim(e) && branch_in(e).leads(best) && counts(branch_in(e))) best = branch_in(e);
  return best;
}

branch progress_table::most_followed(const branch& own) const {
  std::map<std::pair<std::uint64_t, state_id>, std::pair<std::size_t, branch>> found;
  for (const auto& [peer, e] : entries_) {
    if (e.what.arriving != 0) continue;
    const branch theirs{e.what.epoch, e.what.history, e.what.state};
    auto& [count, best] = found.try_emplace({theirs.epoch, theirs.state}, 0, theirs).first->second;
    ++count;
    if (theirs.leads(best)) best = theirs;
  }
  auto out = own;
  std::size_t most = 0;
  for (const auto& [where, what] : found) {
    if (what.first < most || (what.first == most && !what.second.leads(out))) continue;
    most = what.first;
    out = what.second;
  }
  return out;
}

std::uint64_t progress_table::samples_on(const branch& which) const {
  std::uint64_t sum = 0;
  for (const auto& [peer, e] : entries_)
    if (on(e.what, which) && counts(e)) sum += e.what.samples;
  return sum;
}

double progress_table::samples_expected_on(const branch& which, duration now,
                                           duration stepped) const {
  constexpr double spare_seconds = 1;
  double sum = 0;
  for (const auto& [peer, e] : entries_) {
    auto here = on(e.what, which);
    if (!here && e.what.epoch + 1 != which.epoch) continue;
    if (!counts(e)) continue;
    const auto said = here ? e.changed : stepped;
    // A peer that still shows the former step will compute, though its record does not announce it.
    const auto reckoned = here ? static_cast<double>(e.what.computes_for_ms) / 1000 : 0;
    // At the last reading, the peer had been silent for too long. Its later records are unknown.
    const bool silent = to_seconds(looked_ - said) > reckoned + spare_seconds ||
                        (here && e.what.computes_for_ms == 0);
    const auto since = silent ? 0 : to_seconds(now - said);
    const auto expected = (here ? static_cast<double>(e.what.samples) : 0.0) + since * speed_of(e);
    sum += std::min(expected, static_cast<double>(most_.samples));
  }
  return sum;
}

double progress_table::samples_per_second_near(std::uint64_t epoch) const {
  double sum = 0;
  for (const auto& [peer, e] : entries_)
    if (e.what.epoch + 1 >= epoch && e.what.epoch <= epoch + 1 && counts(e)) sum += speed_of(e);
  return sum;
}

std::uint64_t progress_table::contributions_to(std::uint64_t epoch, const state_id& state,
                                               const state_id& parent) const {
  std::uint64_t sum = 0;
  for (const auto& [peer, e] : entries_) {
    if (e.what.epoch == epoch && e.what.state == state) sum += e.what.contribution;
    if (e.what.epoch + 1 == epoch && e.what.state == parent) sum += e.what.samples;
  }
  return sum;
}

bool progress_table::round_under_way(std::uint64_t epoch, const state_id& state) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& one) {
    const auto& what = one.second.what;
    return what.epoch == epoch && what.state == state &&
           (what.contribution > 0 || what.part == round_part::has_result);
  });
}

progress_table::contributors progress_table::contributors_to(std::uint64_t epoch,
                                                             const state_id& state) const {
  contributors out;
  for (const auto& [peer, e] : entries_) {
    if (e.what.epoch != epoch || e.what.state != state || e.what.contribution == 0 ||
        e.what.part != round_part::takes_part)
      continue;
    ++out.count;
    out.reachable += e.what.unreachable == 0 ? 1 : 0;
  }
  return out;
}

bool progress_table::passed(std::uint64_t epoch, const state_id& state) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& one) {
    const auto& what = one.second.what;
    return what.epoch == epoch && what.state == state && what.part == round_part::passes;
  });
}

std::vector<peer_id> progress_table::peers_through(std::uint64_t epoch,
                                                   const state_id& state) const {
  std::vector<peer_id> out;
  for (const auto& [peer, e] : entries_)
    if (e.what.epoch == epoch && e.what.state == state && e.what.part == round_part::has_result)
      out.push_back(peer);
  return out;
}

std::uint64_t progress_table::samples_at(std::uint64_t epoch) const {
  std::uint64_t sum = 0;
  for (const auto& [peer, e] : entries_)
    if (e.what.epoch == epoch && e.what.arriving == 0) sum += e.what.samples;
  return sum;
}

std::size_t progress_table::peers_near(std::uint64_t epoch) const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [&](const auto& one) {
        return one.second.what.arriving == 0 && one.second.what.epoch + 1 >= epoch &&
               one.second.what.epoch <= epoch + 1;
      }));
}

std::uint64_t progress_table::median_epoch(std::uint64_t own) const {
  std::vector<std::uint64_t> all{own};
  for (const auto& [peer, e] : entries_)
    if (e.what.arriving == 0) all.push_back(e.what.epoch);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

std::vector<peer_id> progress_table::peers_from(std::uint64_t epoch) const {
  std::vector<peer_id> out;
  for (const auto& [peer, e] : entries_)
    if (e.what.epoch >= epoch && e.what.arriving == 0) out.push_back(peer);
  return out;
}

std::vector<peer_id> progress_table::peers_on(const branch& which) const {
  std::vector<peer_id> out;
  for (const auto& [peer, e] : entries_)
    if (on(e.what, which) && e.what.arriving == 0) out.push_back(peer);
  return out;
}

bool progress_table::awaits(const entry& what, std::uint64_t epoch, const state_id& state,
                            const state_id& parent) const {
  const bool here = what.what.epoch == epoch && what.what.state == state &&
                    what.what.part == round_part::takes_part;
  const bool stepping = what.what.epoch + 1 == epoch && what.what.state == parent;
  return (here || stepping) && counts(what);
}

std::vector<expected_peer> progress_table::expected_on(std::uint64_t epoch, const state_id& state,
                                                       const state_id& parent) const {
  std::vector<expected_peer> out;
  for (const auto& [id, entry] : entries_)
    if (awaits(entry, epoch, state, parent)) out.push_back({id, entry.address});
  return out;
}

std::uint32_t progress_table::takers_needed(std::uint64_t epoch, const state_id& state,
                                            const state_id& parent, std::size_t own) const {
  // Auxiliary peers say that they are arriving, and take no result.
  const auto others = std::count_if(entries_.begin(), entries_.end(), [&](const auto& one) {
    return one.second.what.arriving == 0 && awaits(one.second, epoch, state, parent);
  });
  return static_cast<std::uint32_t>((own + static_cast<std::size_t>(others)) / 3 + 1);
}

} // namespace shoal::actors
