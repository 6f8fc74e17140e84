#include "actors/training/shard_client.hpp"

#include "actors/averaging/certificate.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/failpoints.hpp"
#include "actors/training/peer_config.hpp"
#include "actors/training/state_object.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace shoal::actors {

namespace {

constexpr std::size_t most_lost_shards = 8;
constexpr std::size_t most_shards = 64;
constexpr unsigned most_referrals = 4;
constexpr std::uint32_t small_group = 32;
constexpr std::uint32_t neighbours = 4;

caf::actor_addr weak(const caf::actor& whom) {
  return caf::actor_cast<caf::actor_addr>(whom);
}

template <class List>
bool contains(const List& list, const caf::actor_addr& whom) {
  return std::find(list.begin(), list.end(), whom) != list.end();
}

/// Adds `whom` as the latest of at most most_lost_shards entries.
void remember(std::deque<caf::actor_addr>& list, const caf::actor_addr& whom) {
  std::erase(list, whom);
  list.push_back(whom);
  if (list.size() > most_lost_shards) list.pop_front();
}

} // namespace

shard_client_config shard_side_of(const peer_config& options, bool streams,
                                  std::uint64_t sample_bytes, bool size_only) {
  return {streams,
          options.prefetch_samples,
          options.min_refresh,
          options.max_refresh,
          options.find_shard,
          options.corpus,
          sample_bytes,
          size_only};
}

std::vector<caf::actor> shard_client::addresses() const {
  std::vector<caf::actor> out;
  for (const auto& one : shards_) out.push_back(one.address);
  return out;
}

// -- finding a shard ------------------------------------------------------------------------------

void shard_client::look_up(duration now) {
  // The DHT may still hold the record of a shard that just died. It is not read again at once.
  if (looked_up_ > duration::min() && now - looked_up_ < config_.min_refresh)
    return plan_look_up(looked_up_ + config_.min_refresh - now);
  looked_up_ = now;
  io_.look_up_shards();
}

void shard_client::look_up_due(duration now) {
  look_up_planned_ = false;
  look_up(now);
}

void shard_client::plan_look_up(duration wait) {
  if (!std::exchange(look_up_planned_, true)) io_.look_up_shards_in(wait);
}

bool shard_client::is_shard(const caf::actor& address, std::string_view certificate) const {
  return address &&
         (!config_.find_shard ||
          config_.find_shard(caf::actor_cast<caf::strong_actor_ptr>(address), certificate));
}

void shard_client::found(const std::vector<shared<record>>& records, duration now) {
  shards_.clear();
  const record* newest = nullptr;
  for (const auto& each : records) {
    const auto& r = *each;
    const auto what = shard_record::unpack(r.value);
    if (!what || !is_shard(r.address, what->certificate)) continue;
    if (what->replica) {
      if (shards_.size() < most_shards) shards_.push_back({r.address, what->replica});
      // A shard without replicas may have records of several incarnations. The one with the latest
      // expiration counts.
    } else if (newest == nullptr || r.expires_utc_ns > newest->expires_utc_ns)
      newest = &r;
  }
  if (shards_.empty() && newest != nullptr) shards_.push_back({newest->address, std::nullopt});
  if (!shard_) choose(true, now);
  if (!changed_.empty()) ask_for_changed(now);
}

bool shard_client::has_replicas() const {
  return std::any_of(shards_.begin(), shards_.end(),
                     [](const known_shard& one) { return one.replica.has_value(); });
}

void shard_client::choose(bool desperate, duration now) {
  const auto rank = [this](const known_shard& one) {
    const auto lost = std::find(lost_.begin(), lost_.end(), weak(one.address));
    // Lost replicas come last. The first of them is the longest lost, because it may be back. Then
    // primaries precede backups, and longer serving replicas precede others.
    const auto when = lost == lost_.end() ? -1 : lost - lost_.begin();
    return std::tuple{when, one.replica && one.replica->role != replica_role::primary,
                      one.replica ? one.replica->index_block : 0};
  };
  const auto best =
      std::min_element(shards_.begin(), shards_.end(),
                       [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (best == shards_.end() || (!desperate && std::get<0>(rank(*best)) >= 0)) return;
  adopt(best->address, now);
}

void shard_client::adopt(const caf::actor& shard, duration now) {
  shard_ = shard;
  io_.watch(shard_);
  // A replica that takes over has to hear of the peer's samples at once.
  if (has_replicas() && !stopped_) {
    last_samples_ = now;
    const auto have = held_.ready();
    requested_ = have >= config_.prefetch_samples
                     ? 0
                     : static_cast<std::uint32_t>(config_.prefetch_samples - have);
    io_.send(shard_, caf::make_message(sample_request{io_.self(), requested_, held_.all()}));
  } else {
    request(now);
  }
  // The former shard may have lost commits that it did not answer.
  for (const auto& round : unanswered_) io_.send(shard_, caf::make_message(round));
}

void shard_client::leave() {
  changed_ = {}; // the new shard does not know of these leases
  remember(former_, weak(std::exchange(shard_, nullptr)));
  // The new shard does not know of that credit.
  requested_ = 0;
}

void shard_client::down(const caf::actor_addr& whom, duration now) {
  if (!shard_ || weak(shard_) != whom) return;
  leave();
  if (!has_replicas()) return;
  remember(lost_, whom);
  choose(false, now);
  look_up(now);
}

void shard_client::on(const not_primary& what, const caf::strong_actor_ptr& sender, duration now) {
  if (!is_current(sender)) return; // the peer has left that replica
  io_.unwatch(shard_);
  leave();
  const auto primary = weak(what.primary);
  const bool listed = std::any_of(shards_.begin(), shards_.end(), [&](const known_shard& one) {
    return one.address == what.primary;
  });
  // This peer may have no link to the named host yet. Its record then shows what it is.
  if (what.primary && !listed && !is_shard(what.primary, {}))
    return plan_look_up(config_.min_refresh);
  if (what.primary && !contains(lost_, primary)) {
    if (!listed && shards_.size() < most_shards)
      shards_.push_back({what.primary, replica_record{}});
    return adopt(what.primary, now);
  }
  // That replica has not heard of the loss yet, or there is no primary now. If it repeats the
  // referral, the lost primary is back.
  if (what.primary && ++referrals_ >= most_referrals) {
    std::erase(lost_, primary);
    referrals_ = 0;
  }
  plan_look_up(config_.min_refresh);
}

// -- samples --------------------------------------------------------------------------------------

bool shard_client::is_current(const caf::strong_actor_ptr& sender) const {
  return shard_ && caf::actor_cast<caf::strong_actor_ptr>(shard_) == sender;
}

bool shard_client::is_known(const caf::strong_actor_ptr& sender) const {
  if (is_current(sender) || contains(former_, caf::actor_cast<caf::actor_addr>(sender)))
    return true;
  return std::any_of(shards_.begin(), shards_.end(), [&](const known_shard& one) {
    return one.address && caf::actor_cast<caf::strong_actor_ptr>(one.address) == sender;
  });
}

void shard_client::request(duration now) {
  if (!shard_ || !config_.streams || stopped_) return;
  if (!changed_.empty() && now - asked_for_changed_ > config_.max_refresh) ask_for_changed(now);
  // Credit without samples for a while is lost: the shard died, or had no samples.
  if (requested_ > 0 && now - last_samples_ > 2 * config_.max_refresh) requested_ = 0;
  // Copies are on their way if a replica is there that gives them.
  const auto awaited = !changed_.empty() && has_source_of_copies() ? changed_count() : 0;
  const auto have = requested_ + held_.ready() + awaited;
  const auto credit = have >= config_.prefetch_samples ? 0 : config_.prefetch_samples - have;
  if (credit * 4 < config_.prefetch_samples && now - last_samples_ < config_.max_refresh) return;
  if (requested_ == 0) last_samples_ = now;
  requested_ += static_cast<std::uint32_t>(credit);
  io_.send(shard_, caf::make_message(sample_request{io_.self(), static_cast<std::uint32_t>(credit),
                                                    held_.all()}));
}

shard_client::finding shard_client::look_at(const sample_range& range, const payload& data,
                                            const payload* proof) const {
  if (range.count == 0 || range.end() < range.first ||
      data.size() != range.count * config_.sample_bytes ||
      (data.is_size_only() && !config_.size_only) || (proof != nullptr) != config_.corpus.exists())
    return finding::malformed;
  return proof == nullptr || config_.corpus.has(range, data, *proof) ? finding::right
                                                                     : finding::changed;
}

result<bool> shard_client::take_leased(const sample_range& range, const payload& data,
                                       const payload* proof, const caf::strong_actor_ptr& sender,
                                       duration now) {
  if (!is_current(sender)) {
    if (is_known(sender)) return false;
    return failure{"samples from a shard that was not asked"};
  }
  const auto found = look_at(range, data, proof);
  if (found == finding::malformed)
    return failure{"samples of the wrong size, or without their proof"};
  requested_ -= std::min(requested_, range.count);
  if (found == finding::changed) {
    remember(forged_, caf::actor_cast<caf::actor_addr>(sender));
    // No honest shard sends more, so none can fill the memory.
    if (changed_count() + range.count <= config_.prefetch_samples) {
      changed_.insert(range.first, range.end());
      ask_for_changed(now);
    }
    return failure{"samples that are not of the corpus"};
  }
  keep(range, data, now);
  return true;
}

result<bool> shard_client::take_copies(const sample_range& range, const payload& data,
                                       const payload* proof, const caf::strong_actor_ptr& sender,
                                       duration now) {
  if (!is_known(sender)) return failure{"copies of samples from a host that is no shard"};
  switch (look_at(range, data, proof)) {
  case finding::malformed:
    return failure{"copies of the wrong size, or without their proof"};
  case finding::changed:
    remember(forged_, caf::actor_cast<caf::actor_addr>(sender));
    return failure{"copies of samples that are not of the corpus"};
  case finding::right:
    break;
  }
  const auto wanted = changed_.pieces(range.first, range.end());
  for (const auto& piece : wanted) {
    const sample_range part{piece.first, static_cast<std::uint32_t>(piece.size())};
    keep(part,
         data.slice((piece.first - range.first) * config_.sample_bytes,
                    piece.size() * config_.sample_bytes),
         now);
  }
  changed_.erase(range.first, range.end());
  return !wanted.empty();
}

void shard_client::lost(const std::vector<sample_range>& ranges) {
  held_.drop_ready(ranges);
  for (const auto& range : ranges) changed_.erase(range.first, range.end());
}

std::uint64_t shard_client::changed_count() const {
  std::uint64_t out = 0;
  for (const auto& piece : changed_.pieces()) out += piece.size();
  return out;
}

bool shard_client::has_source_of_copies() const {
  const auto from = source_of_copies();
  return from && !contains(forged_, weak(from));
}

caf::actor shard_client::source_of_copies() const {
  if (!shard_ || !contains(forged_, weak(shard_))) return shard_;
  const auto other = std::find_if(shards_.begin(), shards_.end(), [this](const known_shard& one) {
    return !contains(forged_, weak(one.address)) && !contains(lost_, weak(one.address));
  });
  return other == shards_.end() ? shard_ : other->address;
}

void shard_client::ask_for_changed(duration now) {
  asked_for_changed_ = now;
  if (!has_source_of_copies()) {
    // Another replica may have come since the records were read.
    if (now - looked_up_ >= config_.max_refresh) look_up(now);
    return;
  }
  std::vector<sample_range> ranges;
  for (const auto& piece : changed_.pieces()) append_range(ranges, piece.first, piece.end);
  ask_for_copies(std::move(ranges));
}

void shard_client::keep(const sample_range& range, const payload& data, duration now) {
  last_samples_ = now;
  referrals_ = 0;
  samples_end_ = std::max(samples_end_, range.end());
  held_.add_ready(range, data, config_.sample_bytes);
}

std::uint64_t shard_client::plausible_end(std::vector<std::uint64_t> claims) const {
  if (claims.empty()) return 0;
  std::sort(claims.begin(), claims.end());
  const auto anchor = samples_end_ > 0 ? samples_end_ : claims[(claims.size() - 1) / 2];
  const auto limit =
      anchor + std::min(most_ahead, std::numeric_limits<std::uint64_t>::max() - anchor);
  const auto above = std::upper_bound(claims.begin(), claims.end(), limit);
  return above == claims.begin() ? 0 : *std::prev(above);
}

void shard_client::give_back(std::vector<sample_range> ranges) {
  if (shard_ && !ranges.empty())
    io_.send(shard_, caf::make_message(samples_returned{std::move(ranges)}));
}

void shard_client::ask_for_copies(std::vector<sample_range> ranges) {
  if (const auto from = source_of_copies(); from && !ranges.empty())
    io_.send(from, caf::make_message(copies_wanted{io_.self(), std::move(ranges)}));
}

// -- commits --------------------------------------------------------------------------------------

void shard_client::hand_in(commit round, proof by, bool carries) {
  if (shard_ && by && carries)
    io_.send(shard_, caf::make_message(proven_commit{round, sent_form(*by)}));
  else if (shard_)
    io_.send(shard_, caf::make_message(round));
  if (shard_ && io_.failpoint(failpoint::commit_twice)) io_.send(shard_, caf::make_message(round));
  if (unanswered_.size() == most_commits) {
    proofs_.erase(unanswered_.front().group);
    unanswered_.pop_front();
  }
  if (by) proofs_[round.group] = std::move(by);
  unanswered_.push_back(std::move(round));
}

shard_client::proof shard_client::proof_of(const group_id& round) const {
  const auto found = proofs_.find(round);
  return found == proofs_.end() ? nullptr : found->second;
}

void shard_client::hand_in_once(const commit& round) {
  if (std::none_of(unanswered_.begin(), unanswered_.end(),
                   [&](const commit& known) { return known.group == round.group; }))
    hand_in(round);
}

bool shard_client::on(const commit_received& what, const caf::strong_actor_ptr& sender) {
  if (!is_known(sender)) return false;
  std::erase_if(unanswered_, [&](const commit& sent) { return sent.group == what.group; });
  proofs_.erase(what.group);
  return true;
}

std::uint32_t members_spoken_for(const round_result& result, bool unreachable) {
  const auto size = static_cast<std::uint32_t>(result.members.size());
  return unreachable || size <= small_group ? size : neighbours;
}

bool carries_proof(const round_result& result) {
  if (!result.certificate) return false;
  const auto leader = result.certificate->roster.leader;
  const auto size = static_cast<std::uint32_t>(result.members.size());
  return result.member == leader || result.member == (leader + 1) % size;
}

commit commit_of(const round_result& result, std::uint32_t speaks_for) {
  commit out;
  out.epoch = result.epoch;
  out.group = result.group;
  out.parts_total = static_cast<std::uint32_t>(result.parts.size());
  const auto size = static_cast<std::uint32_t>(result.members.size());
  for (std::uint32_t step = 0; step < speaks_for; ++step) {
    const auto m = (result.member + step) % size;
    const auto& info = result.members[m];
    // A member that joined another group has its samples there, so this group must not commit them.
    const bool elsewhere = std::binary_search(result.declined.begin(), result.declined.end(), m);
    if (info.samples.empty() || elsewhere) continue;
    commit_entry entry{info.peer, info.samples, 0};
    for (const auto& part : result.parts)
      if (std::binary_search(part.senders.begin(), part.senders.end(), m)) ++entry.parts_included;
    out.entries.push_back(std::move(entry));
  }
  return out;
}

} // namespace shoal::actors
