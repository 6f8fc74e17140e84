// Training peer: the downloads that state_catch_up plans, and the service for other peers'
// downloads.
#include "actors/data/observations.hpp"
#include "actors/failpoints.hpp"
#include "actors/probes.hpp"
#include "actors/reachability/observations.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/training_peer_parts.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace shoal::actors {

// -- downloading ----------------------------------------------------------------------------------

state_catch_up::situation training_peer::situation() const {
  const auto& reach = parts_->reach;
  const bool unreached = reach.known() != reach::unknown && reached() == reached_by::nobody;
  return {others(), own_branch(),       leading(),
          *state(), here().rate_down(), unreached || !reach.settled()};
}

std::vector<peer_id> training_peer::donors() const {
  return parts_->catch_up.donors(others(), leading());
}

void training_peer::start_download() {
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
  if (mode_ != mode::downloading || what.epoch != lead.epoch || what.state != lead.state) return;
  parts_->catch_up.nears_end(lead);
  publish();
}

void training_peer::on_download(const download_report& report) {
  if (!is_fetcher(current_sender())) return;
  auto& catch_up = parts_->catch_up;
  parts_->fetcher = nullptr;
  here().observe(catch_up.ended(report));
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
  const bool fits = step.epoch == state()->epoch + 1 && step.samples >= state()->samples;
  if (!fits) misbehaviour(0, "a step that does not follow this peer's state");
  return fits;
}

void training_peer::repeat_step(taken_step step) {
  if (!follows_state(step)) {
    parts_->catch_up.reject_step(state()->id);
    enter(mode::computing);
    return look_up_progress();
  }
  const auto after = std::make_shared<state_ptr>();
  auto work = [pool = pool(), before = state(), step, after] {
    *after = pool->step(before, step.gradient, step.after, step.samples - before->samples);
  };
  compute(std::move(work), 0, [this, step, after] { step_repeated(step, *after); });
}

void training_peer::step_repeated(taken_step step, const state_ptr& after) {
  if (mode_ != mode::downloading || !after) return;
  const auto bytes = step.gradient.size();
  step.gradient = pool()->gradient_between(state(), after, std::move(step.gradient));
  keep_served(state(), std::move(step));
  // With overlap, the peers that made the step may never have crossed over to it.
  adopt(after, bytes, false, traits_.overlaps_rounds);
}

void training_peer::adopt(state_ptr next, std::uint64_t bytes, bool whole, bool of_step) {
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

// -- serving --------------------------------------------------------------------------------------

void training_peer::keep_served(const state_ptr& former, std::optional<taken_step> step) {
  parts_->cache.put(former, std::move(step), now());
}

void training_peer::on_state_request(const state_request& message) {
  if (!message.reply_to) return misbehaviour(0, "state request without an address");
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
      !parts_->cache.admit(message.reply_to, *object, message.reserve != 0, now()))
    return refuse(reason::busy);
  state_bytes_asked_ = 0;
  auto offer = object->offer();
  const auto& commits = parts_->shard.unanswered();
  offer.commits.assign(commits.begin(), commits.end());
  send(message.reply_to, std::move(offer));
}

void training_peer::on_state_hold(const state_hold& message) {
  if (!message.reply_to) return misbehaviour(0, "state hold without an address");
  if (message.done != 0) return parts_->cache.release(message.reply_to);
  parts_->cache.renew(message.reply_to, message.object, now());
}

void training_peer::on_chunk_request(const state_chunk_request& message) {
  if (!message.reply_to) return misbehaviour(0, "state chunk request without an address");
  const auto object =
      parts_->cache.find(message.object, shared_state(), options_.fetch.chunk_bytes);
  state_chunk answer{message.object, message.offset, {}};
  if (object) {
    const auto refuse = [&] {
      send(message.reply_to, state_refused{static_cast<std::uint8_t>(reason::busy)});
    };
    if (!parts_->cache.admit(message.reply_to, *object, false, now())) return refuse();
    answer.data =
        object->bytes(message.offset, std::min<std::uint64_t>(message.count, max_payload_bytes));
    const auto before = std::exchange(state_bytes_asked_, state_bytes_asked_ + answer.data.size());
    if (before < object->size() / 2 && state_bytes_asked_ >= object->size() / 2) {
      here().probe(probes::state_half_sent);
      if (here().failpoint(failpoint::donor_stops)) return refuse();
    }
  }
  send(message.reply_to, std::move(answer));
}

} // namespace shoal::actors
