#include "actors/training/training_peer.hpp"

#include "actors/averaging/group.hpp"
#include "actors/data/observations.hpp"
#include "actors/dht/host_record.hpp"
#include "actors/failpoints.hpp"
#include "actors/probes.hpp"
#include "actors/reachability/observations.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/training_peer_parts.hpp"
#include "actors/trust/identity.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

training_peer::parts::parts(training_peer& of, std::shared_ptr<state_pool> with, caf::actor node)
    : pool(std::move(with)), dht(std::move(node)), effects(of, dht, shard_timer, shard_token),
      shard(effects,
            shard_side_of(of.options_, of.traits_.streams_samples, pool->work().sample_bytes(),
                          pool->work().is_size_only()),
            held),
      others({of.traits_.most_samples > 0 ? of.traits_.most_samples : ~std::uint64_t{0},
              static_cast<std::uint64_t>(2000 * to_seconds(of.options_.max_refresh)) + 1}),
      records({of.options_.min_refresh, of.options_.max_refresh, of.options_.record_lifetime}),
      reach(of.options_.reachability, of.here().random_stream("peer.reachability")),
      rounds(of.options_.averaging),
      catch_up({of.options_.fetch, of.options_.max_refresh, of.options_.averaging.matchmaking_time,
                of.traits_.one_branch, of.traits_.repeats_steps, 4 * pool->work().step_values(),
                of.traits_.method_state_bytes, pool->work().is_size_only(),
                of.traits_.follows_steps}),
      cache({.uploads = of.options_.max_uploads, .lease = 2 * of.options_.fetch.donor_timeout}),
      audits({pool->work().sample_bytes(), pool->work().is_size_only(), of.options_.max_refresh,
              of.options_.averaging.guard ? of.options_.averaging.guard->duty_time : duration{}}) {}

training_peer::training_peer(caf::actor_config& config, host& on, peer_config options,
                             method_traits traits, std::shared_ptr<state_pool> pool, caf::actor dht)
    : protocol_actor(config, on), options_(std::move(options)), traits_(traits),
      parts_(std::make_unique<parts>(*this, std::move(pool), std::move(dht))),
      backoff_(on.random_stream("peer.backoff")), speed_(0.2) {}

training_peer::~training_peer() = default;

caf::behavior training_peer::make_behavior() {
  parts_->device = spawn<device>(std::ref(here()), options_.device);
  parts_->state = pool()->initial();
  if (traits_.proves_steps) {
    chain_follower::settings how;
    how.timeout = std::min<duration>(how.timeout, options_.fetch.donor_timeout);
    how.group_size = options_.averaging.group_size;
    parts_->follower.emplace(how, chain_point{state()->epoch, state()->id},
                             actors::member_of(here().key()));
  }
  discard_work();
  here().observe(phase_changed{peer_phase::joining, 0, state()->id});
  refresh_in(duration{});
  set_timer(options_.max_refresh, data_timer);
  auto& parts = *parts_;
  return {
      // The most frequent message comes first, as in the other actors.
      [this](found& m) { on_found(m); },
      [this](tick& m) { on_tick(m); },
      [this, &parts](samples& m) { on_samples(parts.shard.take(m, current_sender(), now())); },
      [this, &parts](proven_samples& m) {
        on_samples(parts.shard.take(m, current_sender(), now()));
      },
      [this](lease_lost& m) { on_lease_lost(m); },
      [this, &parts](commit_received& m) {
        if (!parts.shard.on(m, current_sender()))
          sender_misbehaves("commit_received: from a stranger");
      },
      [this](proof_wanted& m) { on_proof_wanted(m); },
      [this, &parts](not_primary& m) { parts.shard.on(m, current_sender(), now()); },
      [this](work_done& m) { on_work_done(m); },
      [this](audit_duty& m) { on_audit(m); },
      [this](sample_copies& m) { on_copies(m); },
      [this](proven_copies& m) { on_copies(m); },
      [this](duty_missed& m) { on_missed(m); },
      [this, &parts](round_report& m) {
        parts.group = nullptr;
        parts.rounds.learn(*m.result, now());
        round_ended(*m.result);
      },
      [this](download_report& m) { on_download(m); },
      [this](donors_wanted& m) { on_donors_wanted(m); },
      [this](download_nears_end& m) { on_download_nears_end(m); },
      [this](chain_request& m) { on_chain_request(m); },
      [this](chain_answer& m) { on_chain_answer(m); },
      [this](state_request& m) { on_state_request(m); },
      [this](state_hold& m) { on_state_hold(m); },
      [this](state_chunk_request& m) { on_chunk_request(m); },
      [this](address_query& m) { on_address_query(m); },
      [this, &parts](address_answer& m) {
        if (parts.reach.on(m, current_sender())) looked();
      },
      [this, &parts](dial_request& m) {
        if (!parts.reach.helper().dial(m, current_sender(), here(),
                                       caf::actor_cast<caf::actor>(this),
                                       options_.reachability.timeout / 2))
          sender_misbehaves("dial request without an address");
      },
      [this](dial_answer& m) { on_dial_answer(m); },
      [this, &parts](dialled& m) {
        if (auto answer = parts.reach.helper().done(m)) send(answer->to, answer->what);
      },
      [](greeting&) {},
  };
}

void training_peer::on_tick(const tick& message) {
  auto& reach = parts_->reach;
  switch (message.kind) {
  case refresh_timer:
    if (parts_->records.is_due(message.token)) refresh();
    return;
  case retry_timer:
    return decide();
  case data_timer:
    request_samples();
    look_after_audits();
    return set_timer(options_.max_refresh, data_timer);
  case shard_timer:
    return parts_->shard.look_up_due(now());
  case chain_timer:
    ask_for_chains();
    return decide();
  case look_timer:
    if (reach.looking(message.token)) looked();
    return;
  case look_again_timer:
    if (!reach.looking(message.token)) return;
    for (auto& [to, query] : reach.again()) send(to, std::move(query));
    return;
  case drain:
    draining_ = true;
    if (has_group()) cancel_group();
    if (parts_->fetcher) send_exit(parts_->fetcher, caf::exit_reason::user_shutdown);
    return leave();
  default:
    return;
  }
}

void training_peer::on_exit() {
  for (auto* child : {&parts_->device, &parts_->group, &parts_->fetcher})
    if (*child) send_exit(*child, caf::exit_reason::user_shutdown);
  parts_.reset();
  protocol_actor::on_exit();
}

const state_ptr& training_peer::state() const {
  return parts_->state;
}
void training_peer::set_state(state_ptr next) {
  parts_->state = std::move(next);
}
const std::shared_ptr<state_pool>& training_peer::pool() const {
  return parts_->pool;
}
const progress_table& training_peer::others() const {
  return parts_->others;
}
held_samples& training_peer::held() {
  return parts_->held;
}
const held_samples& training_peer::held() const {
  return parts_->held;
}

void training_peer::enter(mode next) {
  if (next != mode_) entered_ = now();
  mode_ = next;
  if (next == mode::stopped) parts_->shard.stop();
  auto phase = next == mode::downloading ? peer_phase::downloading
               : next == mode::averaging ? peer_phase::averaging
               : next == mode::joining   ? peer_phase::joining
                                         : peer_phase::computing;
  if (next != mode::stepping) here().observe(phase_changed{phase, state()->epoch, state()->id});
}

void training_peer::leave() {
  if (mode_ == mode::stopped || !may_leave()) return;
  give_back_work();
  parts_->shard.give_back(held().take_ready());
  withdraw_record();
  mode_ = mode::stopped;
  parts_->shard.stop();
}

// -- records --------------------------------------------------------------------------------------

progress training_peer::own_record() const {
  progress mine;
  // The peer is on no branch. Its record is only for peers that have to dial it.
  if (mode_ == mode::joining) {
    mine.arriving = 1;
  } else if (mode_ == mode::downloading) {
    const auto& where = *parts_->catch_up.arriving();
    mine.epoch = where.epoch;
    mine.state = where.state;
    mine.history = where.history;
    mine.arriving = 1;
    if (traits_.overlaps_rounds) mine.part = round_part::came_late;
  } else {
    const auto where = position();
    mine.epoch = where.epoch;
    mine.state = where.state;
    mine.history = where.history;
    mine.samples = promised();
  }
  if (mode_ != mode::joining) {
    mine.millisamples_per_second = static_cast<std::uint64_t>(speed() * 1000);
    mine.rate_up = here().rate_up();
    if (mode_ != mode::downloading) describe(mine);
  }
  if (parts_->reach.enabled()) {
    mine.reach = parts_->reach.known();
    mine.unreachable = reached() == reached_by::nobody ? 1 : 0;
  }
  return mine;
}

void training_peer::publish() {
  // No peer should count on this one before it is ready, or after it leaves.
  if (draining_ || (mode_ == mode::joining && !parts_->reach.enabled())) return;
  if (mode_ == mode::downloading && !parts_->catch_up.arriving()) return;
  auto mine = own_record();
  if (!parts_->records.is_news(mine, now())) return;
  if (held().running())
    mine.computes_for_ms = static_cast<std::uint64_t>(to_seconds(next_refresh()) * 1000) + 1;
  send(parts_->dht,
       store{progress_key, host_record(here(), address(), mine.pack(), options_.record_lifetime)});
}

void training_peer::withdraw_record() {
  send(parts_->dht, withdraw{progress_key, host_subkey(here())});
}

void training_peer::announce() {
  if (!parts_->records.may_announce(now())) return;
  publish();
  look_up_progress();
}

void training_peer::look_up_progress() {
  send(parts_->dht, lookup{progress_key, address(), progress_token});
}

double training_peer::swarm_speed() const {
  return speed() + others().samples_per_second_near(position().epoch);
}

duration training_peer::next_refresh() const {
  progress_publisher::outlook outlook;
  outlook.busy = mode_ != mode::computing && mode_ != mode::joining;
  outlook.busy_for = now() - entered_;
  outlook.heard = heard_;
  if (!outlook.busy) {
    outlook.samples_per_second = swarm_speed();
    if (outlook.samples_per_second > 0) outlook.missing_samples = missing_samples();
  }
  return parts_->records.next_refresh(outlook);
}

void training_peer::refresh() {
  publish();
  if (!has_shard() && traits_.streams_samples) parts_->shard.look_up(now());
  look_up_progress();
  refresh_in(here().failpoint(failpoint::looks_late) ? options_.max_refresh : next_refresh());
}

void training_peer::refresh_in(duration wait) {
  set_timer(wait, refresh_timer, parts_->records.plan(wait, now()));
}

void training_peer::on_found(const found& answer) {
  if (answer.token == shard_token) return parts_->shard.found(answer.records, now());
  heard_ = true;
  const auto owner_of = [this](const caf::actor& address) {
    const auto whose = caf::actor_cast<caf::strong_actor_ptr>(address);
    const auto member = here().member_of(whose);
    // Nobody waits for a banned member, or for its samples.
    return here().is_banned(member) ? progress_table::owner{}
                                    : progress_table::owner{here().peer_of(whose), member};
  };
  parts_->others.replace(answer.records, here().id(), now(), owner_of,
                         actors::member_of(here().key()));
  look_around();
  ask_for_chains();
  for (const auto& whom : parts_->reach.to_greet(others(), here().has_relay()))
    send(whom, greeting{here().id()});
  decide();
  // The new records do not affect the planned time, unless they make the next reading due earlier.
  if (const auto wait = next_refresh(); parts_->records.sooner(wait, now())) refresh_in(wait);
}

// -- data and computing ---------------------------------------------------------------------------

bool training_peer::has_shard() const {
  return parts_->shard.connected();
}
void training_peer::on_down(const caf::actor_addr& whom) {
  parts_->shard.down(whom, now());
  lost_claimant(whom);
}
void training_peer::request_samples() {
  parts_->shard.request(now());
}

void training_peer::on_samples(const result<bool>& came) {
  if (!came) return sender_misbehaves(came.error());
  if (*came && (mode_ == mode::computing || draining_)) decide();
}

void training_peer::on_lease_lost(const lease_lost& message) {
  if (!parts_->shard.is_current(current_sender())) return;
  parts_->shard.lost(message.ranges);
  if (!traits_.steps_locally) return;
  // Other peers have committed these samples, or may have them now. They stay in the peer's
  // parameters, but the peer commits them no more unless it gets the lease back.
  if (auto repeated = held().lose_computed(message.ranges); !repeated.empty())
    here().observe(samples_reported{"repeated: in the parameters of a peer that lost their lease",
                                    here().id(), state()->epoch, std::move(repeated)});
}

sample_job training_peer::take_samples(std::uint64_t most) {
  return held().take(most, pool()->work().sample_bytes(), now());
}

void training_peer::compute(std::function<void()> work, std::uint64_t samples,
                            std::function<void()> then, bool is_step) {
  parts_->jobs[++last_job_] = std::move(then);
  send(parts_->device, compute_job{std::make_shared<std::function<void()>>(std::move(work)),
                                   samples, last_job_, caf::actor_cast<caf::actor>(this), is_step,
                                   samples == 0 && traits_.untimed_rounds});
}

void training_peer::on_work_done(const work_done& message) {
  if (auto job = parts_->jobs.extract(message.token)) job.mapped()();
  audit_next();
}

std::optional<sample_job> training_peer::finished_job() {
  auto job = held().end_job();
  if (!job || !job->discard) return job;
  parts_->shard.give_back(job->ranges());
  return std::nullopt;
}

void training_peer::measure_speed(const sample_job& job) {
  const auto seconds = to_seconds(now() - job.started);
  if (seconds > 0) speed_.add(static_cast<double>(job.samples) / seconds);
}

void training_peer::give_back_work() {
  auto ranges = held().give_up();
  discard_work();
  parts_->shard.give_back(std::move(ranges));
}

void training_peer::give_back_contribution() {
  parts_->shard.give_back(held().take_in_round());
}

// -- averaging ------------------------------------------------------------------------------------

reached_by training_peer::reached() const {
  return parts_->reach.reached(here().has_relay());
}
bool training_peer::may_lead() const {
  return parts_->reach.settled() || others().entries().empty();
}
bool training_peer::has_group() const {
  return static_cast<bool>(parts_->group);
}

void training_peer::start_group(round_request request, averaging_config how) {
  parts_->rounds.prepare(request, how);
  how.conduct = options_.conduct;
  request.rate_up = here().rate_up();
  request.rate_down = here().rate_down();
  request.reached = reached();
  request.samples = held().in_round();
  request.dht = parts_->dht;
  how.most_weight = traits_.most_weight;
  judge_members(request);
  keep_judged_state();
  parts_->group = spawn<group_actor>(std::ref(here()), caf::actor_cast<caf::actor>(this), how,
                                     std::move(request));
}

void training_peer::tell_group(std::vector<expected_peer> expected, std::uint64_t known_samples) {
  send(parts_->group, expected_now{std::move(expected), known_samples});
}

void training_peer::cancel_group() {
  send(parts_->group, tick{group_actor::cancel, 0});
}

void training_peer::send_commit(const round_result& result) {
  auto what = commit_of(result, members_spoken_for(result, parts_->reach.enabled()));
  if (!traits_.proves_steps) return parts_->shard.hand_in(std::move(what));
  parts_->shard.hand_in(std::move(what), result.certificate, carries_proof(result));
}

void training_peer::on_proof_wanted(const proof_wanted& message) {
  if (!parts_->shard.is_known(current_sender()))
    return sender_misbehaves("proof_wanted: from a stranger");
  auto proof = parts_->shard.proof_of(message.group);
  // A joiner hands in commits of rounds that it knows from the chain.
  if (!proof && parts_->follower) proof = parts_->follower->certificate_of(message.group);
  commit_proof out;
  out.group = message.group;
  out.lacks = proof ? 0 : 1;
  out.complete = message.with_admissions;
  if (proof) out.by = sent_form(*proof);
  if (proof && message.with_admissions != 0) out.admitted = admissions_of(*proof, here());
  send(caf::actor_cast<caf::actor>(current_sender()), std::move(out));
}

void training_peer::note_round(const round_result& round) {
  parts_->catch_up.arrived();
  // The samples of other members are their own word. A wrong one would make a later run skip data.
  std::vector<std::uint64_t> ends;
  for (const auto& member : round.members) {
    std::uint64_t end = 0;
    for (const auto& range : member.samples) end = std::max(end, range.end());
    if (end > 0) ends.push_back(end);
  }
  data_from_ = std::max(data_from_, parts_->shard.plausible_end(std::move(ends)));
}

void training_peer::checkpoint_if_due() {
  if (options_.checkpoint_every == 0 || state()->epoch % options_.checkpoint_every != 0 ||
      !options_.on_checkpoint)
    return;
  options_.on_checkpoint(saved_state(), data_from_);
}

// -- how others reach the peer --------------------------------------------------------------------

void training_peer::look_around() {
  auto& reach = parts_->reach;
  if (draining_ || !reach.due(now())) return;
  const auto queries = reach.look(others(), address(), parts_->shard.addresses(), now(), here());
  for (const auto& [to, query] : queries) send(to, query);
  if (queries.empty()) return;
  // The repetition leaves time for a dialling to fail and for the report of that.
  set_timer(reach.repeat_after(), look_again_timer, reach.token());
  set_timer(reach.timeout(), look_timer, reach.token());
}

void training_peer::looked() {
  const auto& reach = parts_->reach;
  if (parts_->reach.conclude(now())) {
    here().observe(reach_learned{reach.known()});
    send(parts_->dht, serve{static_cast<std::uint8_t>(reach.known() == reach::open ? 1 : 0)});
    publish();
  }
  decide();
}

void training_peer::on_address_query(const address_query& message) {
  // A peer may ask for itself only, so that it cannot have other hosts dialled.
  if (!message.reply_to ||
      caf::actor_cast<caf::strong_actor_ptr>(message.reply_to) != current_sender())
    return sender_misbehaves("an address query for another peer");
  send(message.reply_to, address_answer{message.token, here().seen_address(message.reply_to)});
  if (auto request = parts_->reach.helper().asked(message, sender_member(), address(), now(),
                                                  parts_->reach.timeout()))
    send(message.third, std::move(*request));
}

void training_peer::on_dial_answer(const dial_answer& message) {
  if (auto answer = parts_->reach.helper().passed_on(message, current_sender()))
    return send(answer->to, answer->what);
  if (parts_->reach.on(message, current_sender())) looked();
}

} // namespace shoal::actors
