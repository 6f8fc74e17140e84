#include "actors/training/state_fetcher.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

namespace {
constexpr std::uint32_t look_timer = 1;
}

state_fetcher::state_fetcher(caf::actor_config& config, host& on, caf::actor owner,
                             fetch_config options, std::vector<expected_peer> donors,
                             std::shared_ptr<state_download> download)
    : protocol_actor(config, on), owner_(std::move(owner)), options_(options),
      first_(std::move(donors)), download_(std::move(download)) {}

caf::behavior state_fetcher::make_behavior() {
  if (download_->begun()) offers_[download_->chosen()] = download_->offer();
  for (const auto& who : std::exchange(first_, {})) add(who);
  set_timer(options_.donor_timeout / 4, look_timer);
  return {
      [this](state_offer& m) { on_offer(m); },
      [this](state_refused& m) { on_refused(m); },
      [this](state_chunk& m) { on_chunk(m); },
      [this](more_donors& m) { on_more(m); },
      [this](tick&) {
        look();
        set_timer(options_.donor_timeout / 4, look_timer);
      },
  };
}

void state_fetcher::on_exit() {
  // The donors live on, and would keep each dead watcher in memory.
  for (const auto& d : donors_) demonitor(d.address);
  donors_.clear();
  owner_ = nullptr;
  download_.reset();
  offers_.clear();
  protocol_actor::on_exit();
}

void state_fetcher::add(const expected_peer& who) {
  const bool known = std::any_of(donors_.begin(), donors_.end(),
                                 [&](const donor& d) { return d.address == who.address; });
  if (known) return;
  const bool reserve = living(false) >= options_.donors;
  donors_.push_back({who.peer, who.address, reserve, {}, {}, {}, false, false, now()});
  monitor(who.address);
  send(who.address,
       state_request{download_->object(), static_cast<std::uint8_t>(reserve ? 1 : 0), address()});
}

std::size_t state_fetcher::living(bool reserves) const {
  return static_cast<std::size_t>(
      std::count_if(donors_.begin(), donors_.end(), [&](const donor& d) {
        const bool may_deliver = !d.gone && (!d.offered || *d.offered == download_->chosen());
        return may_deliver && (reserves || !d.reserve);
      }));
}

state_fetcher::donor* state_fetcher::sender_donor() {
  for (auto& d : donors_)
    if (sent_by(d.address)) return &d;
  return nullptr;
}

void state_fetcher::on_offer(const state_offer& offer) {
  auto* from = sender_donor();
  if (!from) return sender_misbehaves("a state offer from a peer that is no donor");
  if (from->gone) return;
  if (from->offered) {
    // The donor was asked once. Every offered version is kept, so a faulty donor could send any
    // number of them.
    if (*from->offered == state_download::version(offer)) return;
    return expose(*from, "a second state offer");
  }
  from->last_progress = now();
  if (!download_->sensible(offer, options_.max_bytes))
    return expose(*from, "an impossible state offer");
  if (!download_->wants(offer)) return drop(*from, reason::out_of_sync);
  from->offered = state_download::version(offer);
  from->commits = offer.commits;
  offers_.try_emplace(*from->offered, offer);
  if (!download_->begun()) {
    download_->begin(offer);
    if (download_->complete()) return report(reason::none);
  }
  choose();
  // The offer of another state is useful if the donors of the chosen one are lost; or it is false.
  // A reserve may have to replace its donor.
  if (*from->offered != download_->chosen()) return fill_up();
  ask();
}

/// Chooses the version that most donors offer. Correct donors never offer different bytes under the
/// same name.
void state_fetcher::choose() {
  if (!download_->begun() || download_->object().is_zero()) return;
  std::map<id128, std::size_t> votes;
  for (const auto& d : donors_)
    if (!d.gone && d.offered) ++votes[*d.offered];
  const auto ours = votes[download_->chosen()];
  for (const auto& [version, count] : votes) {
    if (count <= ours || (count == 1 && !owner_knows_nobody_)) continue;
    for (auto& d : donors_) d.asked.clear();
    download_->begin(offers_.at(version));
    return choose();
  }
}

void state_fetcher::on_refused(const state_refused& refusal) {
  auto* from = sender_donor();
  if (!from) return sender_misbehaves("a refused download from a peer that is no donor");
  const auto why = static_cast<reason>(refusal.why);
  drop(*from, why == reason::busy ? reason::busy : reason::out_of_sync);
}

void state_fetcher::ask() {
  if (!download_->begun()) return;
  std::size_t under_way = 0;
  for (const auto& d : donors_) under_way += d.asked.size();
  for (bool more = true; more;) {
    more = false;
    for (auto& d : donors_) {
      if (under_way >= options_.window_total) return;
      if (d.gone || d.reserve || d.offered != download_->chosen() ||
          d.asked.size() >= options_.window_chunks)
        continue;
      const auto at = download_->take();
      if (!at) return;
      if (d.asked.empty()) d.last_progress = now();
      d.asked.insert(*at);
      ++under_way;
      send(d.address,
           state_chunk_request{download_->offer().object, *at,
                               static_cast<std::uint32_t>(download_->size_at(*at)), address()});
      more = true;
    }
  }
}

void state_fetcher::on_chunk(const state_chunk& chunk) {
  auto* from = sender_donor();
  // The chunk is too late.
  if (!from || !from->asked.contains(chunk.offset) || chunk.object != download_->offer().object)
    return;
  if (chunk.data.empty()) return drop(*from, reason::out_of_sync);
  report_.bytes += chunk.data.size();
  if (!download_->add(chunk.offset, chunk.data)) {
    report_.rejected += chunk.data.size();
    return expose(*from, "a state chunk with a wrong hash");
  }
  from->last_progress = now();
  from->asked.erase(chunk.offset);
  if (!std::exchange(from->delivered, true)) ++report_.donors;
  if (download_->complete()) return report(reason::none);
  if (!announced_ && download_->missing_bytes() <= options_.announce_bytes) {
    announced_ = true;
    send(owner_, download_nears_end{download_->offer().epoch, download_->offer().state});
  }
  ask();
}

void state_fetcher::expose(donor& which, std::string lie) {
  misbehaviour(which.peer, std::move(lie));
  report_.faulty.push_back(which.peer);
  drop(which, reason::bad_message);
}

void state_fetcher::drop(donor& which, reason why) {
  if (which.gone) return;
  which.gone = true;
  for (const auto at : std::exchange(which.asked, {})) download_->put_back(at);
  if (why == reason::out_of_sync) ++lacking_;
  // The report names the reason that the next attempt can do most about.
  if (why == reason::busy || trouble_ == reason::donors_lost) trouble_ = why;
  choose();
  fill_up();
}

void state_fetcher::fill_up() {
  for (auto& d : donors_)
    if (!d.gone && d.reserve && living(false) < options_.donors) {
      d.reserve = false;
      d.last_progress = now();
    }
  if (living(true) == 0) turn_to_another();
  const auto have = living(true);
  const bool nobody_has_it = have == 0 && lacking_ >= options_.donors;
  if (nobody_has_it) return report(reason::out_of_sync);
  if (have < options_.donors + options_.reserves && !asked_owner_ && !owner_knows_nobody_) {
    asked_owner_ = true;
    const auto epoch = download_->begun() ? std::optional(download_->offer().epoch) : std::nullopt;
    send(owner_, donors_wanted{options_.donors + options_.reserves - have, epoch});
  }
  if (have == 0 && !asked_owner_) return report(trouble_);
  ask();
}

/// Chooses the state of another donor, where each donor has its own.
void state_fetcher::turn_to_another() {
  if (!download_->begun() || !download_->object().is_zero()) return;
  const auto next = std::find_if(donors_.begin(), donors_.end(), [&](const donor& d) {
    return !d.gone && d.offered && d.offered != download_->chosen();
  });
  if (next == donors_.end()) return;
  next->reserve = false;
  next->last_progress = now();
  download_->begin(offers_.at(*next->offered));
}

void state_fetcher::on_more(const more_donors& more) {
  asked_owner_ = false;
  const auto before = donors_.size();
  for (const auto& who : more.donors) add(who);
  owner_knows_nobody_ = donors_.size() == before;
  if (owner_knows_nobody_) choose();
  if (living(true) == 0) return report(trouble_);
  ask();
}

void state_fetcher::look() {
  for (auto& d : donors_) {
    const bool waits = !d.offered || !d.asked.empty();
    if (!d.gone && waits && now() - d.last_progress > options_.donor_timeout) {
      drop(d, reason::donors_lost);
      if (!owner_) return;
    }
    if (!d.gone && d.reserve && d.offered)
      send(d.address, state_hold{download_->offer().object, 0, address()});
  }
  // New donors may have joined since.
  owner_knows_nobody_ = false;
  if (living(false) < options_.donors) fill_up();
}

void state_fetcher::on_down(const caf::actor_addr& whom) {
  for (auto& d : donors_)
    if (caf::actor_cast<caf::actor_addr>(d.address) == whom) return drop(d, reason::donors_lost);
}

void state_fetcher::report(reason why) {
  if (!owner_) return;
  report_.why = why;
  for (const auto& d : donors_) {
    // A donor that is gone by now may have been the last one that knew of a round.
    if (d.offered && *d.offered == download_->chosen())
      for (auto& one : d.commits)
        if (std::none_of(report_.commits.begin(), report_.commits.end(),
                         [&](const commit& known) { return known.group == one.group; }))
          report_.commits.push_back(std::move(one));
    if (d.gone) continue;
    if (d.offered && *d.offered == download_->chosen()) report_.holders.push_back(d.peer);
    if (!d.reserve) send(d.address, state_hold{download_->offer().object, 1, address()});
    for (const auto at : d.asked) download_->put_back(at);
  }
  send(owner_, std::move(report_));
  owner_ = nullptr;
  quit();
}

} // namespace shoal::actors
