// Training peer: the downloads that state_catch_up plans, and the service for other peers'
// downloads.
#include "actors/averaging/certificate.hpp"
#include "actors/data/observations.hpp"
#include "actors/failpoints.hpp"
#include "actors/probes.hpp"
#include "actors/reachability/observations.hpp"
#include "actors/training/chain_pages.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/training_peer_parts.hpp"
#include "actors/trust/identity.hpp"
#include "actors/trust/known_groups.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace shoal::actors {

// -- downloading ----------------------------------------------------------------------------------

state_catch_up::situation training_peer::situation() const {
  const auto& reach = parts_->reach;
  const bool unreached = reach.known() != reach::unknown && reached() == reached_by::nobody;
  state_catch_up::situation out{others(), own_branch(),       leading(),
                                *state(), here().rate_down(), unreached || !reach.settled()};
  if (follower()) {
    auto& certified = out.certified.emplace();
    // The roster of the last step of the chain names the root of the state before it.
    if (const auto last = follower()->step_to(follower()->leading())) {
      certified.epoch = last->before.epoch;
      certified.state = last->before.state;
      certified.root = last->root;
    }
    certified.by_steps = follower()->is_behind();
    if (const auto next = follower()->step_from({state()->epoch, state()->id}))
      certified.next = next->after.state;
    certified.is_open = follower()->asks();
    for (const auto& [peer, e] : others().entries())
      if (e.what.arriving == 0 && (follower()->may_adopt({e.what.epoch, e.what.state})))
        certified.holders.emplace_back(e.what.epoch, peer);
  }
  return out;
}

/// Every peer can make the initial state, so a branch that begins there needs no download of it.
void training_peer::go_back_to_begin() {
  const auto first = pool()->initial();
  const chain_point begin{first->epoch, first->id};
  if (!follower() || !follower()->may_adopt(begin)) return;
  const auto last = follower()->step_to(follower()->leading());
  if (!last || last->before != begin) return;
  give_back_work();
  set_state(first);
  here().observe(adopted{first->epoch, first->id, 0, false});
  parts_->follower->adopted(begin);
  state_adopted();
}

// -- branches -------------------------------------------------------------------------------------

const std::optional<chain_follower>& training_peer::follower() const {
  return parts_->follower;
}

branch training_peer::best_branch() const {
  if (!follower()) return others().leading(own_branch());
  const auto& head = follower()->leading();
  if (head == follower()->own().head()) return own_branch();
  // The number of samples is the claim of one that is there; it decides nothing.
  for (const auto& [peer, e] : others().entries())
    if (e.what.epoch == head.epoch && e.what.state == head.state)
      return {head.epoch, e.what.history, head.state};
  return {head.epoch, state()->samples, head.state};
}

bool training_peer::branch_is_open() const {
  constexpr int most_timeouts = 4;
  return follower() && follower()->asks() &&
         now() - entered_ < most_timeouts * chain_follower::settings{}.timeout;
}

step_ptr training_peer::step_by(const round_result& round) const {
  if (!round.certificate) return nullptr;
  return pool()->shared_step(step_of(round.certificate));
}

void training_peer::stepped_by(const step_ptr& step) {
  if (!parts_->follower || !step) return;
  parts_->follower->stepped(step);
  std::map<member_id, std::uint64_t> weights;
  for (const auto& member : step->certificate->roster.members)
    weights[actors::member_of(member.key)] = member.weight;
  parts_->others.certified(weights, actors::member_of(here().key()), speed());
  // A group without room for all says nothing about those that are not in it.
  if (step->certificate->roster.members.size() >= options_.averaging.group_size) return;
  std::set<member_id> members;
  for (const auto& [member, weight] : weights) members.insert(members.end(), member);
  parts_->others.took_part(members, step->before.state);
}

void training_peer::ask_for_chains() {
  if (!parts_->follower || draining_) return;
  // The round of this peer may itself lead to the claimed state.
  std::optional<duration> max_wait;
  if (mode_ == mode::averaging) max_wait = 2 * options_.averaging.poll_interval;
  if (mode_ == mode::stepping) max_wait = options_.averaging.round_timeout;
  for (const auto& question : parts_->follower->ask(others(), max_wait, now())) ask(question);
}

/// The records of a dead peer outlive it, so a newcomer may ask it first. Another claimant is asked
/// at once.
void training_peer::lost_claimant(const caf::actor_addr& whom) {
  if (!parts_->follower || !parts_->follower->lost(whom, now())) return;
  ask_for_chains();
  decide();
}

void training_peer::ask(const chain_follower::question& what) {
  monitor(what.to);
  send(what.to, chain_request{what.locator, address()});
  set_timer(parts_->follower->timeout() + std::chrono::milliseconds(1), chain_timer);
}

void training_peer::on_chain_request(const chain_request& message) {
  if (!is_senders(message.reply_to)) return sender_misbehaves("a chain request for another host");
  if (!parts_->follower || message.locator.size() > chain::most_points)
    return sender_misbehaves("a chain request that no peer makes");
  send(message.reply_to, page_after(parts_->follower->own(), message.locator, here()));
}

void training_peer::on_chain_answer(const chain_answer& message) {
  const auto from = sender_peer();
  // The answer may have come too late.
  if (!parts_->follower || !parts_->follower->was_asked(from)) return;
  auto& follower = *parts_->follower;
  demonitor(caf::actor_cast<caf::actor_addr>(current_sender()));
  const auto refute = [&](std::string why) {
    misbehaviour(from, std::move(why));
    follower.refuted(from, now());
    ask_for_chains();
    decide();
  };
  if (!sensible(message)) return refute("a page of a chain that no peer sends");
  if (message.lacks != 0) {
    follower.refuted(from, now());
    ask_for_chains();
    return decide();
  }
  for (const auto& one : message.admitted) here().admits(one.key, one.text);
  std::vector<step_ptr> steps;
  auto head = message.common;
  for (const auto& round : message.steps) {
    if (round.roster.epoch != head.epoch || round.roster.state != head.state)
      return refute("a chain whose steps do not follow each other");
    const auto certificate = certificate_of(round);
    const chain_point after{head.epoch + 1, state_after(head.state, group_of(certificate->roster),
                                                        certificate->version)};
    // A step that this peer has, too, is proven already.
    auto step = certificate->second ? nullptr : follower.step_to(after);
    if (!step) {
      auto proven = prove(certificate, here());
      if (!proven) return refute("an unproven step: " + proven.error());
      step = pool()->shared_step(std::move(proven.value()));
    }
    head = step->after;
    steps.push_back(std::move(step));
  }
  const auto next =
      follower.answered(from, message.common, steps, message.more != 0, others(), now());
  if (next) return ask(*next);
  ask_for_chains();
  decide();
}

std::vector<peer_id> training_peer::donors() const {
  return parts_->catch_up.donors(others(), leading());
}

void training_peer::start_download() {
  go_back_to_begin();
  auto plan = parts_->catch_up.begin(situation(), now());
  switch (plan.what) {
  case state_catch_up::verdict::not_yet:
    return;
  case state_catch_up::verdict::too_slow:
    return pause_download(plan);
  case state_catch_up::verdict::nobody:
    return try_again_in(plan.pause);
  case state_catch_up::verdict::download:
    break;
  }
  give_back_work();
  enter(mode::downloading);
  parts_->fetcher =
      spawn<state_fetcher>(std::ref(here()), caf::actor_cast<caf::actor>(this), plan.fetch,
                           std::move(plan.donors), std::move(plan.download));
  if (plan.arrives_soon)
    publish();
  else
    withdraw_record();
}

void training_peer::pause_download(const state_catch_up::plan& plan) {
  here().observe(download_ended{false, leading().epoch, reason::too_slow, 0, 0, 0});
  withdraw_record();
  enter(mode::joining);
  try_again_in(plan.pause);
}

void training_peer::fetch_step(std::function<void(std::optional<taken_step>)> then) {
  auto plan = parts_->catch_up.begin_step(situation());
  if (plan.what != state_catch_up::verdict::download) return;
  parts_->step_fetched = std::move(then);
  parts_->fetcher =
      spawn<state_fetcher>(std::ref(here()), caf::actor_cast<caf::actor>(this), plan.fetch,
                           std::move(plan.donors), std::move(plan.download));
}

bool training_peer::fetches_step() const {
  return parts_->catch_up.downloads_concurrently();
}

bool training_peer::is_fetcher(const caf::strong_actor_ptr& sender) const {
  return parts_->fetcher && caf::actor_cast<caf::strong_actor_ptr>(parts_->fetcher) == sender;
}

void training_peer::on_donors_wanted(const donors_wanted& what) {
  if (!is_fetcher(current_sender())) return;
  send(parts_->fetcher, more_donors{parts_->catch_up.more_donors_for(what, situation())});
}

void training_peer::on_download_nears_end(const download_nears_end& what) {
  const auto lead = leading();
  const bool to_lead = (what.epoch == lead.epoch && what.state == lead.state) ||
                       (follower() && follower()->may_adopt({what.epoch, what.state}));
  if (mode_ != mode::downloading || !to_lead) return;
  parts_->catch_up.nears_end(lead);
  publish();
}

void training_peer::on_download(const download_report& report) {
  if (!is_fetcher(current_sender())) return;
  auto& catch_up = parts_->catch_up;
  parts_->fetcher = nullptr;
  here().observe(catch_up.ended(report));
  for (const auto peer : report.faulty) parts_->others.distrust(peer);
  if (report.why == reason::none)
    for (const auto& round : report.commits) parts_->shard.hand_in_once(round);
  if (catch_up.downloads_concurrently()) {
    const auto then = std::exchange(parts_->step_fetched, nullptr);
    return then(catch_up.take_concurrent_step(report));
  }
  if (mode_ != mode::downloading) return;
  auto got = catch_up.take_result(report, state()->id);
  if (auto* step = std::get_if<taken_step>(&got)) return repeat_step(std::move(*step));
  if (auto* whole = std::get_if<model_state>(&got)) {
    const auto next = pool()->intern(std::make_shared<const model_state>(std::move(*whole)));
    if (prefers(*next)) return adopt(next, next->bytes(), true, false);
  }
  enter(mode::computing);
  publish();
  look_up_progress();
}

bool training_peer::follows_state(const taken_step& step) {
  bool fits = step.epoch == state()->epoch + 1 && step.samples >= state()->samples;
  if (follower()) fits = fits && follower()->may_adopt({step.epoch, step.after});
  // Values that are no numbers would end all training.
  if (!step.gradient.is_size_only()) fits = fits && kernels::all_finite(step.gradient.floats());
  return fits;
}

/// A step that does not fit accuses nobody: two rounds may lead on from one state, and a donor may
/// have the other one's step. Nor does it fit if another branch leads since the download began.
void training_peer::repeat_step(taken_step step) {
  if (!follows_state(step)) {
    parts_->catch_up.reject_step(state()->id);
    enter(mode::computing);
    return look_up_progress();
  }
  const auto after = std::make_shared<state_ptr>();
  std::shared_ptr<const round_certificate> certificate;
  if (follower()) certificate = follower()->step_to({step.epoch, step.after})->certificate;
  auto work = [pool = pool(), before = state(), step, after, certificate] {
    if (certificate && !proves(*certificate, step, before->samples)) return;
    *after = pool->step(before, step.gradient, step.after, step.samples - before->samples);
  };
  compute(std::move(work), 0, [this, step, after] { step_repeated(step, *after); });
}

void training_peer::step_repeated(taken_step step, const state_ptr& after) {
  if (mode_ != mode::downloading) return;
  if (!after) {
    // Each donor of these bytes names the state for which the round's members voted.
    for (const auto peer : parts_->catch_up.distrust_donors()) {
      misbehaviour(peer, "a step that is not the one its round's members voted for");
      parts_->others.distrust(peer);
    }
    parts_->catch_up.reject_step(state()->id);
    enter(mode::computing);
    return look_up_progress();
  }
  const auto bytes = step.gradient.size();
  step.gradient = pool()->gradient_between(state(), after, std::move(step.gradient));
  keep_served(state(), std::move(step));
  // With overlap, the peers that made the step may never have crossed over to it.
  adopt(after, bytes, false, traits_.overlaps_rounds);
}

void training_peer::adopt(state_ptr next, std::uint64_t bytes, bool whole, bool of_step) {
  if (parts_->follower) {
    const chain_point state{next->epoch, next->id};
    if (!parts_->follower->may_adopt(state)) { // another branch leads meanwhile
      enter(mode::computing);
      return look_up_progress();
    }
    parts_->follower->adopted(state);
    if (options_.averaging.guard) remember_groups();
  }
  set_state(std::move(next));
  here().observe(adopted{state()->epoch, state()->id, bytes, of_step});
  // Other processes took its steps.
  pool()->offer(state());
  parts_->catch_up.adopted(whole);
  state_adopted();
  enter(mode::computing);
  if (parts_->catch_up.goes_on(others(), own_branch(), leading())) {
    start_download();
    if (mode_ == mode::downloading) return;
  }
  publish();
  look_up_progress();
}

/// The host believes verdicts about the rounds of its branch. A chain that was only offered does
/// not count: its groups may have been made in order to judge somebody.
void training_peer::remember_groups() {
  const auto& steps = parts_->follower->own().steps();
  // A host remembers so many groups: older ones would only drive out newer ones.
  const auto count = std::min(steps.size(), known_groups::most_groups);
  for (auto step = steps.end() - static_cast<std::ptrdiff_t>(count); step != steps.end(); ++step) {
    const auto& certificate = *(*step)->certificate;
    here().remember_group(certificate.round(), keys_of(certificate.roster));
  }
}

// -- serving --------------------------------------------------------------------------------------

void training_peer::keep_served(const state_ptr& former, std::optional<taken_step> step) {
  parts_->cache.put(former, std::move(step), now());
}

void training_peer::on_state_request(const state_request& message) {
  if (!is_senders(message.reply_to)) return sender_misbehaves("a state request for another host");
  const auto refuse = [&](reason why) {
    send(message.reply_to, state_refused{static_cast<std::uint8_t>(why)});
  };
  // An out-of-sync peer has no useful state. A quick refusal sends the joiner to another donor.
  if (mode_ == mode::downloading || mode_ == mode::joining || !traits_.serves_state)
    return refuse(reason::out_of_sync);
  const auto object =
      parts_->cache.find(message.object, shared_state(), options_.fetch.chunk_bytes);
  if (!object) return refuse(reason::out_of_sync);
  if (here().failpoint(failpoint::donor_busy) ||
      !parts_->cache.admit(message.reply_to, sender_member(), *object, message.reserve != 0, now()))
    return refuse(reason::busy);
  state_bytes_asked_ = 0;
  auto offer = object->offer();
  const auto& commits = parts_->shard.unanswered();
  offer.commits.assign(commits.begin(), commits.end());
  send(message.reply_to, std::move(offer));
}

void training_peer::on_state_hold(const state_hold& message) {
  if (!is_senders(message.reply_to)) return sender_misbehaves("a state hold for another host");
  if (message.done != 0) return parts_->cache.release(message.reply_to);
  parts_->cache.renew(message.reply_to, message.object, now());
}

void training_peer::on_chunk_request(const state_chunk_request& message) {
  if (!is_senders(message.reply_to))
    return sender_misbehaves("a state chunk request for another host");
  const auto object =
      parts_->cache.find(message.object, shared_state(), options_.fetch.chunk_bytes);
  state_chunk answer{message.object, message.offset, {}};
  if (object) {
    const auto refuse = [&] {
      send(message.reply_to, state_refused{static_cast<std::uint8_t>(reason::busy)});
    };
    if (!parts_->cache.admit(message.reply_to, sender_member(), *object, false, now()))
      return refuse();
    // No correct peer asks for more than a chunk at once.
    answer.data = object->bytes(message.offset,
                                std::min<std::uint64_t>(message.count, options_.fetch.chunk_bytes));
    const auto before = std::exchange(state_bytes_asked_, state_bytes_asked_ + answer.data.size());
    if (before < object->size() / 2 && state_bytes_asked_ >= object->size() / 2) {
      here().probe(probes::state_half_sent);
      if (here().failpoint(failpoint::donor_stops)) return refuse();
    }
  }
  send(message.reply_to, std::move(answer));
}

} // namespace shoal::actors
