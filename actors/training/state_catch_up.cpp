#include "actors/training/state_catch_up.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

constexpr unsigned most_states_in_vain = 3;
constexpr std::uint64_t most_further_behind = 4; // epochs, while the peer repeats steps
// Limits the requested chunks: a round trip, and a queue on the peer's line.
constexpr double longest_queue_seconds = 0.5;
// For downloads that the swarm does not wait for.
constexpr std::size_t far_reserves = 3;
// The epochs that a donor may have gone on since this peer has read the records. With averaged
// parameters, nothing proves a donor's epoch. A joiner with a far epoch would wait for the others.
constexpr std::uint64_t most_epochs_ahead = 4;

std::uint64_t steps_behind(const branch& own, const branch& leading) {
  return leading.epoch - std::min(leading.epoch, own.epoch);
}

} // namespace

// -- beginning ------------------------------------------------------------------------------------

fetch_config state_catch_up::fetch_on(std::uint64_t rate_down) const {
  auto fetch = how_.fetch;
  const auto chunk_seconds =
      8 * static_cast<double>(fetch.chunk_bytes) / static_cast<double>(rate_down);
  fetch.window_total =
      static_cast<std::uint32_t>(std::clamp(longest_queue_seconds / chunk_seconds, 1.0, 65536.0));
  fetch.window_chunks =
      std::max(fetch.window_chunks, static_cast<std::uint32_t>(fetch.window_total / fetch.donors));
  return fetch;
}

/// True if the missing steps are smaller than a state, or if a state would be outdated when it
/// arrives.
bool state_catch_up::downloads_step(const situation& at, std::uint64_t behind) const {
  if (at.certified) {
    if (!at.certified->by_steps) return false;
    // No state beyond this peer's own is certified.
    if (at.certified->root.is_zero() || at.certified->state == at.state.id) return true;
  }
  return how_.repeats_steps && behind > 0 && at.state.id != no_step_from_ &&
         (catching_up_ || behind * how_.step_bytes < at.state.bytes());
}

std::vector<peer_id> state_catch_up::holders(const situation& at, std::uint64_t epoch) const {
  if (!at.certified) return donors(at.others, at.leading);
  std::vector<peer_id> out;
  for (const auto& [their_epoch, peer] : at.certified->holders)
    if (their_epoch >= epoch) out.push_back(peer);
  return out;
}

state_catch_up::plan state_catch_up::give_up(duration now) {
  states_in_vain_ = 0;
  catching_up_ = false;
  download_.reset();
  plan out{
      verdict::too_slow, 16 * how_.max_refresh * (1 << std::min(pauses_++, 6u)), {}, {}, {}, false};
  not_before_ = now + out.pause;
  return out;
}

state_catch_up::plan state_catch_up::begin(const situation& at, duration now) {
  if (now < not_before_) return {};
  const auto behind = steps_behind(at.own, at.leading);
  const bool step = downloads_step(at, behind);
  const bool falls_behind = step && catching_up_ && behind > behind_at_first_ + most_further_behind;
  if (falls_behind || (!step && states_in_vain_ >= most_states_in_vain)) return give_up(now);

  plan out{verdict::download, {}, fetch_on(at.rate_down), {}, {}, false};
  const bool resumes = !step && download_ && download_->begun() && !step_ &&
                       !download_->object().is_zero() &&
                       download_->offer().epoch <= at.leading.epoch;
  const auto bytes = step ? behind * how_.step_bytes : at.state.bytes();
  // The bytes that the peer's line carries in half of the time that the others' round waits.
  const auto waited_for =
      static_cast<double>(at.rate_down) * to_seconds(how_.matchmaking_time) / 16;
  out.arrives_soon = static_cast<double>(bytes) < waited_for;
  if (!out.arrives_soon && how_.repeats_steps) {
    out.fetch.reserves = far_reserves;
    out.fetch.announce_bytes = static_cast<std::uint64_t>(waited_for);
  }
  const bool uncertified = !step && at.certified && at.certified->root.is_zero();
  const auto from = step || !at.certified ? at.own.epoch + 1 : at.certified->epoch;
  out.donors = choose(resumes ? at.others.peers_from(download_->offer().epoch) : holders(at, from),
                      out.fetch.donors + out.fetch.reserves, at);
  if (out.donors.empty() || uncertified) {
    // The others' latest records name states that are not proven yet. A pause would outlast the
    // answer, and end as the records name the next states.
    if (at.certified && at.certified->is_open) return {};
    tried_.clear();
    not_before_ = now + how_.max_refresh;
    return {verdict::nobody, how_.max_refresh, {}, {}, {}, false};
  }
  step_ = step;
  if (step)
    download_ = std::make_shared<state_download>(step_object(at.state.id), how_.step_bytes, 0,
                                                 how_.size_only);
  else if (!resumes) {
    download_ = std::make_shared<state_download>(
        at.certified ? at.certified->state : at.leading.state, at.state.parameters.size(),
        at.state.optimizer.size(), how_.size_only, how_.method_bytes);
    if (at.certified)
      download_->expect(at.certified->root);
    else if (how_.one_branch)
      download_->expect_epoch(at.leading.epoch);
  }
  const auto known = std::max(at.leading.epoch, at.others.median_epoch(at.own.epoch));
  download_->want(step && at.certified ? at.certified->next : state_id{},
                  known + std::min(most_epochs_ahead, ~known));
  out.download = download_;
  // The others' next round waits for a peer that arrives soon. Otherwise a joiner that is always
  // slightly late would catch up for ever. No round waits for a slower peer.
  arriving_ = out.arrives_soon ? std::optional(at.leading) : std::nullopt;
  return out;
}

std::vector<peer_id> state_catch_up::step_holders(const situation& at) const {
  if (how_.follows_steps) return at.others.peers_from(at.state.epoch + 1);
  return at.others.peers_through(at.state.epoch, at.state.id);
}

state_catch_up::plan state_catch_up::begin_step(const situation& at) {
  plan out{verdict::download, {}, fetch_on(at.rate_down), {}, {}, false};
  out.donors = choose(step_holders(at), how_.fetch.donors + how_.fetch.reserves, at);
  if (out.donors.empty()) {
    tried_.clear();
    return {verdict::nobody, {}, {}, {}, {}, false};
  }
  downloads_concurrently_ = true;
  out.download = download_ = std::make_shared<state_download>(step_object(at.state.id),
                                                              how_.step_bytes, 0, how_.size_only);
  return out;
}

std::vector<peer_id> state_catch_up::donors(const progress_table& others,
                                            const branch& leading) const {
  return how_.one_branch ? others.peers_on(leading) : others.peers_from(leading.epoch);
}

std::vector<expected_peer> state_catch_up::choose(std::vector<peer_id> ids, std::size_t most,
                                                  const situation& at) {
  const auto rank = [&](peer_id id) {
    const bool holds = std::find(holders_.begin(), holders_.end(), id) != holders_.end();
    return std::pair(!holds, ~at.others.at(id).what.rate_up);
  };
  std::stable_sort(ids.begin(), ids.end(), [&](peer_id a, peer_id b) { return rank(a) < rank(b); });
  // Records outlive their peers, so donors that failed to deliver come after all others.
  std::erase_if(ids, [&](peer_id id) { return tried_.contains(id) || faulty_.contains(id); });
  // An unreachable donor can answer only peers that it has dialled, so it is a last resort.
  const auto reachable = [&](peer_id id) { return at.others.at(id).what.unreachable == 0; };
  if (at.needs_reachable_donors || std::any_of(ids.begin(), ids.end(), reachable))
    std::erase_if(ids, [&](peer_id id) { return !reachable(id); });
  ids.resize(std::min(ids.size(), most));
  std::vector<expected_peer> out;
  for (const auto id : ids) out.push_back({id, at.others.at(id).address});
  tried_.insert(ids.begin(), ids.end());
  return out;
}

std::vector<expected_peer> state_catch_up::more_donors_for(const donors_wanted& what,
                                                           const situation& at) {
  if (downloads_concurrently_) return choose(step_holders(at), what.count, at);
  if (at.certified)
    return choose(holders(at, what.epoch.value_or(step_ ? at.own.epoch + 1 : at.certified->epoch)),
                  what.count, at);
  // Peers that have moved on may have kept the object.
  auto ids = how_.repeats_steps && what.epoch ? at.others.peers_from(*what.epoch)
                                              : donors(at.others, at.leading);
  return choose(std::move(ids), what.count, at);
}

// -- ending ---------------------------------------------------------------------------------------

download_ended state_catch_up::ended(const download_report& report) {
  faulty_.insert(report.faulty.begin(), report.faulty.end());
  const auto epoch = download_ && download_->begun() ? download_->offer().epoch : 0;
  return {step_, epoch, report.why, report.bytes, report.rejected, report.donors};
}

std::optional<taken_step> state_catch_up::take_concurrent_step(const download_report& report) {
  downloads_concurrently_ = false;
  const auto got = std::exchange(download_, nullptr);
  if (report.why != reason::none) return std::nullopt;
  if (how_.follows_steps) tried_.clear(); // the next step is another question
  return got->step();
}

std::variant<std::monostate, taken_step, model_state>
state_catch_up::take_result(const download_report& report, const state_id& own) {
  if (report.why == reason::none) {
    holders_ = report.holders;
    const auto got = std::exchange(download_, nullptr);
    if (step_) return got->step();
    return got->state();
  }
  if (step_) {
    if (report.why != reason::busy) no_step_from_ = own;
  } else if (report.why == reason::out_of_sync) {
    if (download_->begun()) ++states_in_vain_;
    download_.reset();
  }
  return {};
}

void state_catch_up::adopted(bool whole) {
  if (whole) ++states_in_vain_;
  tried_.clear();
}

bool state_catch_up::goes_on(const progress_table& others, const branch& own,
                             const branch& leading) {
  if (own != leading && how_.repeats_steps) {
    if (!std::exchange(catching_up_, true)) behind_at_first_ = steps_behind(own, leading);
    return true;
  }
  // An empty table does not prove that the peer is alone: a full line loses records, too.
  if (!others.entries().empty() || !how_.repeats_steps) arrived();
  return false;
}

void state_catch_up::arrived() {
  catching_up_ = false;
  states_in_vain_ = pauses_ = 0;
}

} // namespace shoal::actors
