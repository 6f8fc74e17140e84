#include "actors/training/volunteer.hpp"

#include <algorithm>
#include <tuple>

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include "actors/averaging/group.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/probes.hpp"
#include "actors/rare.hpp"
#include "actors/reachability/observations.hpp"
#include "actors/training/observations.hpp"

namespace shoal::actors {

namespace {

constexpr unsigned most_states_in_vain = 3;
constexpr std::uint64_t most_further_behind = 4; // epochs, while we repeat steps
constexpr double longest_queue_seconds = 0.5;    // of chunks that we have asked for: the way there and back, and a queue on our line
constexpr std::size_t far_reserves = 3;          // of a download that the swarm does not wait for
constexpr std::uint32_t speaks_for_all = 32;
constexpr std::size_t most_lost_shards = 8;
constexpr unsigned most_referrals = 4;
constexpr int most_patience = 4;
constexpr const char* shard_key = "data.shard";

}  // namespace

std::vector<sample_range> volunteer::running_job::ranges() const {
  std::vector<sample_range> out;
  for (const auto& block : blocks) append_range(out, block.range);
  return out;
}

volunteer::volunteer(caf::actor_config& config, host& on, peer_config options, std::shared_ptr<state_pool> pool,
                     caf::actor dht)
    : protocol_actor(config, on),
      options_(std::move(options)),
      pool_(std::move(pool)),
      dht_(std::move(dht)),
      backoff_(on.random_stream("peer.backoff")),
      reach_(options_.reachability, on.random_stream("peer.reachability")),
      speed_(0.2),
      gathering_(4 * options_.averaging.poll_interval, options_.averaging.matchmaking_time),
      shelf_({.uploads = options_.max_uploads, .lease = 2 * options_.fetch.donor_timeout}) {}

caf::behavior volunteer::make_behavior() {
  device_ = spawn<device>(std::ref(here()), options_.device);
  state_ = pool_->initial();
  forget_gradients();
  here().observe(phase_changed{peer_phase::joining, 0, state_->id});
  refresh_in(duration{});
  set_timer(options_.max_refresh, data_timer);
  return {
      [this](found& m) { on_found(m); },   // what comes most often is first, here and in the other actors
      [this](tick& m) { on_tick(m); },
      [this](samples& m) { on_samples(m); },
      [this](lease_lost& m) { on_lease_lost(m); },
      [this](commit_received& m) { on_commit_received(m); },
      [this](not_primary& m) { on_not_primary(m); },
      [this](work_done& m) { m.token == repeat_job ? step_repeated() : job_done(m.token); },
      [this](round_report& m) {
        group_ = nullptr;
        learn_from(*m.result);
        on_report(*m.result);
      },
      [this](download_report& m) { on_download(m); },
      [this](donors_wanted& m) { on_donors_wanted(m); },
      [this](download_nears_end& m) { on_download_nears_end(m); },
      [this](state_request& m) { on_state_request(m); },
      [this](state_hold& m) { on_state_hold(m); },
      [this](state_chunk_request& m) { on_chunk_request(m); },
      [this](address_query& m) { on_address_query(m); },
      [this](address_answer& m) {
        reach_.on(m, current_sender());
        if (reach_.looking() && reach_.complete()) looked();
      },
      [this](dial_request& m) { on_dial_request(m); },
      [this](dial_answer& m) { on_dial_answer(m); },
      [this](dialled& m) { on_dialled(m); },
      [](greeting&) {},
  };
}

void volunteer::on_tick(const tick& message) {
  switch (message.kind) {
    case refresh_timer:
      if (message.token == refresh_) refresh();
      return;
    case retry_timer: return decide();
    case data_timer:
      request_samples();
      return set_timer(options_.max_refresh, data_timer);
    case shard_timer:
      shards_planned_ = false;
      return look_up_shards();
    case look_timer:
      if (reach_.looking() && message.token == reach_.token()) looked();
      return;
    case look_again_timer:
      if (!reach_.looking() || message.token != reach_.token()) return;
      for (auto& [to, query] : reach_.again()) send(to, std::move(query));
      return;
    case drain:
      draining_ = true;
      if (group_) send(group_, tick{group_actor::cancel, 0});
      if (fetcher_) send_exit(fetcher_, caf::exit_reason::user_shutdown);
      return leave();
    default: return;
  }
}

void volunteer::on_exit() {
  for (auto* child : {&device_, &group_, &fetcher_})
    if (*child) send_exit(*child, caf::exit_reason::user_shutdown);
  dht_ = shard_ = device_ = group_ = fetcher_ = nullptr;
  shards_.clear();
  lost_shards_.clear();
  former_shards_.clear();
  uncommitted_.clear();
  reach_ = {{}, backoff_};
  helper_ = {};
  others_ = {};
  state_.reset();
  shelf_.clear();
  download_.reset();
  repeated_.reset();
  step_.reset();
  available_.clear();
  pool_.reset();
  protocol_actor::on_exit();
}

void volunteer::enter(mode next) {
  if (next != mode_) entered_ = now();
  mode_ = next;
  auto phase = next == mode::downloading ? peer_phase::downloading
               : next == mode::averaging ? peer_phase::averaging
               : next == mode::joining   ? peer_phase::joining
                                         : peer_phase::computing;
  if (next != mode::stepping) here().observe(phase_changed{phase, state_->epoch, state_->id});
}

// -- records --------------------------------------------------------------------------------------

std::uint64_t volunteer::promised() const { return samples_ + (running_ && !running_->discard ? running_->samples : 0); }

void volunteer::publish() {
  const bool joining = mode_ == mode::joining;
  if (draining_ || (joining && !options_.reachability.enabled)) return;  // nobody should count on us yet
  if (mode_ == mode::downloading && !arriving_) return;
  auto where = mode_ == mode::downloading ? *arriving_ : own_branch();
  progress mine;
  mine.epoch = where.epoch;
  mine.state = where.state;
  mine.history = where.history;
  mine.samples = mode_ == mode::downloading ? 0 : promised();
  mine.millisamples_per_second = static_cast<std::uint64_t>(speed_.value() * 1000);
  mine.rate_up = here().rate_up();
  mine.arriving = mode_ == mode::downloading ? 1 : 0;
  if (mode_ == mode::downloading && options_.overlap != overlap::none) mine.part = round_part::came_late;
  if (mode_ != mode::downloading && !joining) describe(mine);
  if (joining) {  // on no branch: it says only that we are here, for those who have to dial us first
    mine = {};
    mine.arriving = 1;
  }
  if (options_.reachability.enabled) {
    mine.reach = reach_.known();
    mine.unreachable = reached() == reached_by::nobody ? 1 : 0;
  }
  // What nobody would learn anything from is left out, until the record wants renewing.
  auto value = mine.pack();
  if (published_.size() == value.size() && std::ranges::equal(published_.bytes(), value.bytes()) &&
      now() - last_publish_ < options_.record_lifetime / 3)
    return;
  // Its word for how long it computes is no news by itself.
  published_ = std::move(value);
  if (running_) mine.computes_for_ms = static_cast<std::uint64_t>(to_seconds(next_refresh()) * 1000) + 1;
  record entry;
  entry.subkey = fmt::format("{:016x}", here().id());
  entry.address = address();
  entry.value = mine.pack();
  entry.expires_utc_ns = here().utc_ns() + options_.record_lifetime.count();
  send(dht_, store{progress_key, std::move(entry)});
  last_publish_ = now();
}

duration volunteer::next_refresh() const {
  const auto bounded = [this](duration wait) { return std::clamp(wait, options_.min_refresh, options_.max_refresh); };
  // Nothing is expected of us until the round (or the download) is over; it may have got stuck, though.
  if (mode_ != mode::computing && mode_ != mode::joining) return bounded((now() - entered_) / 2);
  // Half of the expected time to the target: what speeds and losses change until then is heard of in time.
  const auto speed = swarm_speed();
  auto wait = options_.max_refresh;
  if (speed > 0) wait = bounded(from_seconds(std::clamp(missing_samples() / speed / 2, 0.0, to_seconds(options_.max_refresh))));
  return heard_ ? wait : std::min(wait, duration{std::chrono::seconds(1)});
}

void volunteer::refresh() {
  publish();
  if (!shard_ && streams_) look_up_shards();
  look_up_progress();
  refresh_in(here().rare(rare::looks_late) ? options_.max_refresh : next_refresh());
}

void volunteer::refresh_in(duration wait) {
  refresh_at_ = now() + wait;
  set_timer(wait, refresh_timer, ++refresh_);
}

void volunteer::on_commit_received(const commit_received& what) {
  if (!is_shard(current_sender())) return misbehaviour(0, "commit_received: from a stranger");
  std::erase_if(uncommitted_, [&](const commit& sent) { return sent.group == what.group; });
}

void volunteer::on_found(const found& answer) {
  if (answer.token == shard_token) {
    on_shards(answer.records);
    if (!shard_) choose_shard(true);
    return;
  }
  heard_ = true;
  others_.replace(answer.records, here().id(), now());
  look_around();
  greet();
  decide();
  // It was reckoned with what was known then.
  if (const auto wait = next_refresh(); now() + wait < refresh_at_) refresh_in(wait);
}

void volunteer::announce() {
  if (now() - last_publish_ < options_.min_refresh) return;
  publish();
  look_up_progress();
}

void volunteer::look_up_progress() { send(dht_, lookup{progress_key, address(), progress_token}); }

// -- data -----------------------------------------------------------------------------------------

std::vector<sample_range> volunteer::held() const {
  std::vector<sample_range> out;
  for (const auto& range : in_round_) append_range(out, range);
  for (const auto& range : accumulated_) append_range(out, range);
  if (running_)
    for (const auto& block : running_->blocks) append_range(out, block.range);
  for (const auto& block : available_) append_range(out, block.range);
  return out;
}

void volunteer::on_shards(const std::vector<shared<record>>& records) {
  shards_.clear();
  const record* newest = nullptr;
  for (const auto& each : records) {
    const auto& r = *each;
    if (!r.address) continue;
    if (auto replica = replica_record::unpack(r.value)) shards_.push_back({r.address, replica});
    // Of several incarnations of a lone one, the one that was heard of last.
    else if (newest == nullptr || r.expires_utc_ns > newest->expires_utc_ns) newest = &r;
  }
  if (shards_.empty() && newest != nullptr) shards_.push_back({newest->address, std::nullopt});
}

bool volunteer::has_replicas() const {
  return std::any_of(shards_.begin(), shards_.end(), [](const shard_record& one) { return one.replica.has_value(); });
}

void volunteer::choose_shard(bool desperate) {
  const auto rank = [this](const shard_record& one) {
    const auto lost = std::find(lost_shards_.begin(), lost_shards_.end(), caf::actor_cast<caf::actor_addr>(one.address));
    // The longest lost first: it may be back. Then primaries, and what has been there for longest.
    const auto when = lost == lost_shards_.end() ? -1 : lost - lost_shards_.begin();
    return std::tuple{when, one.replica && one.replica->role != replica_role::primary, one.replica ? one.replica->territory : 0};
  };
  const auto best = std::min_element(shards_.begin(), shards_.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (best == shards_.end() || (!desperate && std::get<0>(rank(*best)) >= 0)) return;
  adopt_shard(best->address);
}

void volunteer::adopt_shard(const caf::actor& shard) {
  shard_ = shard;
  monitor(shard_);
  // Of several replicas: one that takes over has to hear now what we hold.
  if (has_replicas() && mode_ != mode::stopped) {
    last_samples_ = now();
    const auto have = samples_here();
    requested_ = have >= options_.prefetch_samples ? 0 : static_cast<std::uint32_t>(options_.prefetch_samples - have);
    send(shard_, sample_request{here().id(), address(), requested_, held()});
  } else {
    request_samples();
  }
  // What it did not answer before it was lost may be lost, too.
  for (const auto& round : uncommitted_) send(shard_, round);
}

void volunteer::on_not_primary(const not_primary& what) {
  if (!sent_by(shard_)) return;  // we have left it
  demonitor(shard_);
  leave_shard();
  const auto primary = caf::actor_cast<caf::actor_addr>(what.primary);
  if (what.primary && std::find(lost_shards_.begin(), lost_shards_.end(), primary) == lost_shards_.end()) {
    if (std::none_of(shards_.begin(), shards_.end(), [&](const shard_record& one) { return one.address == what.primary; }))
      shards_.push_back({what.primary, replica_record{}});
    return adopt_shard(what.primary);
  }
  // It does not know yet what we know, or nobody is the primary now. If it goes on saying so, that one is back.
  if (what.primary && ++referrals_ >= most_referrals) {
    std::erase(lost_shards_, primary);
    referrals_ = 0;
  }
  plan_shards(options_.min_refresh);
}

void volunteer::leave_shard() {
  const auto left = caf::actor_cast<caf::actor_addr>(std::exchange(shard_, nullptr));
  std::erase(former_shards_, left);
  former_shards_.push_back(left);
  if (former_shards_.size() > most_lost_shards) former_shards_.pop_front();
  requested_ = 0;  // nobody will honour that credit
}

bool volunteer::is_shard(const caf::strong_actor_ptr& whom) const {
  const auto is = [&](const caf::actor& a) { return a && caf::actor_cast<caf::strong_actor_ptr>(a) == whom; };
  const auto left = std::find(former_shards_.begin(), former_shards_.end(), caf::actor_cast<caf::actor_addr>(whom)) != former_shards_.end();
  return is(shard_) || left || std::any_of(shards_.begin(), shards_.end(), [&](const shard_record& one) { return is(one.address); });
}

void volunteer::on_down(const caf::actor_addr& whom) {
  if (!shard_ || caf::actor_cast<caf::actor_addr>(shard_) != whom) return;
  leave_shard();
  if (!has_replicas()) return;
  std::erase(lost_shards_, whom);
  lost_shards_.push_back(whom);
  if (lost_shards_.size() > most_lost_shards) lost_shards_.pop_front();
  choose_shard(false);
  look_up_shards();
}

void volunteer::look_up_shards() {
  // Of one that is dead and still has a record we hear at once that it is lost: that is not to be asked again at once.
  if (looked_for_shards_ > duration::min() && now() - looked_for_shards_ < options_.min_refresh)
    return plan_shards(looked_for_shards_ + options_.min_refresh - now());
  looked_for_shards_ = now();
  send(dht_, lookup{shard_key, address(), shard_token});
}

void volunteer::plan_shards(duration wait) {
  if (!std::exchange(shards_planned_, true)) set_timer(wait, shard_timer);
}

std::uint64_t volunteer::samples_here() const {
  std::uint64_t out = 0;
  for (const auto& block : available_) out += block.range.count;
  return out;
}

void volunteer::request_samples() {
  if (!shard_ || !streams_ || mode_ == mode::stopped) return;
  // Credit that brought nothing for a while is lost (the shard died, or had nothing).
  if (requested_ > 0 && now() - last_samples_ > 2 * options_.max_refresh) requested_ = 0;
  const auto have = requested_ + samples_here();
  auto credit = have >= options_.prefetch_samples ? 0 : options_.prefetch_samples - have;
  // Ask in strides of a quarter of the window, or when the leases want renewing.
  if (credit * 4 < options_.prefetch_samples && now() - last_samples_ < options_.max_refresh) return;
  if (requested_ == 0) last_samples_ = now();
  requested_ += static_cast<std::uint32_t>(credit);
  send(shard_, sample_request{here().id(), address(), static_cast<std::uint32_t>(credit), held()});
}

void volunteer::on_samples(samples& message) {
  // It was taken for dead while this was under way, or there is another primary. It takes the lease back.
  if (!sent_by(shard_) && is_shard(current_sender())) return;
  if (!sent_by(shard_) || message.range.count == 0 ||
      message.data.size() != message.range.count * pool_->work().sample_bytes() || (message.data.is_hollow() && !pool_->work().hollow()))
    return misbehaviour(0, "samples that nobody asked for");
  last_samples_ = now();
  referrals_ = 0;
  requested_ -= std::min(requested_, message.range.count);
  // A shard that took over may lease us again what we hold of the other one's: it is ours once.
  const auto ours = held();
  const auto bytes = pool_->work().sample_bytes();
  const auto is_held = [&](std::uint64_t index) {
    return std::any_of(ours.begin(), ours.end(), [index](const sample_range& r) { return r.first <= index && index < r.end(); });
  };
  for (std::uint64_t at = message.range.first; at < message.range.end();) {
    auto end = at;
    while (end < message.range.end() && !is_held(end)) ++end;
    if (end > at)
      available_.push_back({{at, static_cast<std::uint32_t>(end - at)}, message.data.slice((at - message.range.first) * bytes, (end - at) * bytes)});
    at = end + (end < message.range.end() ? 1 : 0);
  }
  if (mode_ == mode::computing || draining_) decide();
}

void volunteer::on_lease_lost(const lease_lost& message) {
  if (!sent_by(shard_)) return;
  std::erase_if(available_, [&](const sample_block& block) {
    return std::any_of(message.ranges.begin(), message.ranges.end(), [&](const sample_range& lost) {
      return block.range.first < lost.end() && lost.first < block.range.end();
    });
  });
  lost(message.ranges);
}

volunteer::running_job volunteer::take_samples(std::uint64_t wanted) {
  running_job job;
  auto sample_bytes = pool_->work().sample_bytes();
  while (!available_.empty() && job.samples < wanted) {
    auto& front = available_.front();
    auto take = static_cast<std::uint32_t>(std::min<std::uint64_t>(front.range.count, wanted - job.samples));
    job.blocks.push_back({{front.range.first, take}, front.data.slice(0, take * sample_bytes)});
    job.samples += take;
    if (take == front.range.count) {
      available_.pop_front();
    } else {
      front.data = front.data.slice(take * sample_bytes, (front.range.count - take) * sample_bytes);
      front.range = {front.range.first + take, front.range.count - take};
    }
  }
  job.started = now();
  return job;
}

void volunteer::compute(std::function<void()> work, std::uint64_t samples, std::uint64_t token, bool step) {
  send(device_, compute_job{std::make_shared<std::function<void()>>(std::move(work)), samples, token,
                            caf::actor_cast<caf::actor>(this), step});
}

std::optional<volunteer::running_job> volunteer::finished_job() {
  auto job = std::exchange(running_, std::nullopt);
  if (job && job->discard) {
    if (shard_) send(shard_, samples_returned{here().id(), job->ranges()});
    job.reset();
  }
  return job;
}

void volunteer::measure_speed(const running_job& job) {
  auto seconds = to_seconds(now() - job.started);
  if (seconds > 0) speed_.add(static_cast<double>(job.samples) / seconds);
}

void volunteer::give_back_gradients() {
  auto ranges = std::exchange(accumulated_, {});
  for (const auto& range : std::exchange(in_round_, {})) append_range(ranges, range);
  samples_ = 0;
  forget_gradients();
  if (running_) running_->discard = true;
  if (shard_ && !ranges.empty()) send(shard_, samples_returned{here().id(), std::move(ranges)});
}

void volunteer::note_round(const round_result& round) {
  arrived();
  for (const auto& member : round.members)
    for (const auto& range : member.samples) data_from_ = std::max(data_from_, range.end());
}

void volunteer::checkpoint_if_due() {
  const auto& shared = shared_state();
  if (options_.checkpoint_every > 0 && shared->epoch % options_.checkpoint_every == 0 && options_.on_checkpoint)
    options_.on_checkpoint(shared, data_from_);
}

void volunteer::leave() {
  if (mode_ == mode::stopped || !may_leave()) return;
  give_back_gradients();
  std::vector<sample_range> unused;
  for (const auto& block : std::exchange(available_, {})) append_range(unused, block.range);
  if (shard_ && !unused.empty()) send(shard_, samples_returned{here().id(), std::move(unused)});
  send(dht_, withdraw{progress_key, fmt::format("{:016x}", here().id())});
  mode_ = mode::stopped;
}

// -- averaging ------------------------------------------------------------------------------------

std::vector<expected_peer> volunteer::expected_on(std::uint64_t epoch, const state_id& state, const state_id& parent) const {
  std::vector<expected_peer> out;
  for (const auto& [id, entry] : others_.entries()) {
    const bool here = entry.what.epoch == epoch && entry.what.state == state && entry.what.part == round_part::takes_part;
    const bool stepping = entry.what.epoch + 1 == epoch && entry.what.state == parent;
    if (here || stepping) out.push_back({id, entry.address});
  }
  return out;
}

void volunteer::start_group(round_request request, averaging_config how) {
  // Over long lines what is told to be enough may be too short for any group, ever.
  how.matchmaking_time *= std::clamp(missed_groups_, 1, most_patience);
  how.conduct = options_.conduct;
  request.rate_up = here().rate_up();
  request.rate_down = here().rate_down();
  request.reached = reached();
  request.rate_factors = rates_.factors();
  request.patience = missed_groups_ > 1 ? how.matchmaking_time : std::min(std::max(gathering_.value(), request.patience), how.matchmaking_time);
  request.samples = in_round_;
  request.dht = dht_;
  group_ = spawn<group_actor>(std::ref(here()), caf::actor_cast<caf::actor>(this), how, std::move(request));
}

void volunteer::learn_from(const round_result& result) {
  std::vector<peer_id> reducers;
  for (const auto& m : result.members) reducers.push_back(m.peer);
  if (result.outcome == outcome::ok)
    rates_.measured(reducers, result.part_times, result.line_times);
  else if (result.reason == reason::reducer_timeout)
    rates_.timed_out(reducers, result.part_times, result.line_times, now() - result.started);
  else  // who waits for a silent sender, or takes over a lost part, is late for that reason
    rates_.unmeasured();
  if (result.gathered > duration{}) gathering_.measured(result.gathered);
  const bool missed = result.reason == reason::group_too_small || result.reason == reason::matchmaking_timeout;
  if (missed) gathering_.ran_out();
  if (result.succeeded()) missed_groups_ = std::max(missed_groups_ - 1, 0);
  else if (missed || result.reason == reason::no_reducer) missed_groups_ = std::min(missed_groups_ + 1, most_patience);
}

void volunteer::send_commit(const round_result& result) {
  commit message;
  message.epoch = result.epoch;
  message.group = result.group;
  message.parts_total = static_cast<std::uint32_t>(result.parts.size());
  auto size = static_cast<std::uint32_t>(result.members.size());
  // A round may end well for few members only, or for one: a reducer that was paused, whom the others did not wait for, and whose
  // state they then adopt. So each speaks for all. In large groups that would be the square of many: there for the next three,
  // as it takes four neighbours that die or fail in one instant to lose a commit; but where pairs may lose their way to each
  // other it is more than four.
  const auto spoken_for = options_.reachability.enabled || size <= speaks_for_all ? size : std::uint32_t{4};
  for (std::uint32_t step = 0; step < spoken_for; ++step) {
    auto m = (result.member + step) % size;
    const auto& info = result.members[m];
    // Who is in another group has its samples there; they are not ours to give back.
    auto elsewhere = std::binary_search(result.declined.begin(), result.declined.end(), m);
    if (info.samples.empty() || elsewhere) continue;
    commit_entry entry{info.peer, info.samples, 0};
    for (const auto& part : result.parts)
      if (std::binary_search(part.senders.begin(), part.senders.end(), m)) ++entry.parts_included;
    message.entries.push_back(std::move(entry));
  }
  hand_in(std::move(message));
}

void volunteer::hand_in(commit round) {
  if (shard_) send(shard_, round);
  if (shard_ && here().rare(rare::commit_twice)) send(shard_, round);
  if (uncommitted_.size() == most_commits) uncommitted_.pop_front();
  uncommitted_.push_back(std::move(round));
}

// -- reachability ---------------------------------------------------------------------------------

reached_by volunteer::reached() const {
  const auto known = reach_.known();
  if (known == reach::open) return reached_by::all;
  if (!here().has_relay()) return reached_by::nobody;
  // A relay's signals are enough for most connections with a cone; with the others it would carry every byte.
  return known == reach::cone ? reached_by::all : reached_by::relay;
}

void volunteer::look_around() {
  if (!options_.reachability.enabled || reach_.looking() || now() < reach_.next_look() || draining_) return;
  std::vector<reachability::other> others;
  for (const auto& [id, entry] : others_.entries()) others.push_back({entry.address, entry.what.reach == reach::open});
  // The first records are of few; a look that asks one peer learns nothing.
  if (!others.empty() && first_look_ == duration{}) first_look_ = now() + options_.reachability.patience / 4;
  if (now() < first_look_) return;
  std::vector<caf::actor> shards;
  for (const auto& one : shards_) shards.push_back(one.address);
  auto queries = reach_.look(std::move(others), address(), shards);
  for (auto& [to, query] : queries) send(to, std::move(query));
  if (queries.empty()) return;
  // Once more while a dialling that fails can still be told of.
  set_timer(options_.reachability.patience / 4, look_again_timer, reach_.token());
  set_timer(options_.reachability.patience, look_timer, reach_.token());
}

// Who may be the only one left with the leading state must be within reach of somebody.
void volunteer::greet() {
  if (!options_.reachability.enabled || reached() != reached_by::nobody) return;
  std::erase_if(greeted_, [this](peer_id id) { return !others_.find(id); });
  for (const auto& [id, entry] : others_.entries())
    if ((entry.what.unreachable == 0 || entry.what.reach == reach::unknown) && greeted_.insert(id).second) send(entry.address, greeting{here().id()});
}

void volunteer::looked() {
  const bool changed = reach_.conclude(now());
  if (changed) {
    here().observe(reach_learned{reach_.known()});
    send(dht_, serve{static_cast<std::uint8_t>(reach_.known() == reach::open ? 1 : 0)});
    publish();
  }
  decide();
}

void volunteer::on_address_query(const address_query& message) {
  // Only in one's own name: nobody has others dialled.
  if (!sent_by(message.reply_to))
    return misbehaviour(0, "address query in another's name");
  send(message.reply_to, address_answer{message.token, here().seen_address(message.reply_to)});
  if (auto request = helper_.asked(message, address(), now(), options_.reachability.patience))
    send(message.third, std::move(*request));
}

void volunteer::on_dial_request(const dial_request& message) {
  if (!helper_.dial(message, here(), caf::actor_cast<caf::actor>(this), options_.reachability.patience / 2))
    misbehaviour(0, "dial request without an address");
}

void volunteer::on_dial_answer(const dial_answer& message) {
  if (auto answer = helper_.passed_on(message, current_sender())) return send(answer->to, answer->what);
  reach_.on(message, current_sender());
  if (reach_.looking() && reach_.complete()) looked();
}

void volunteer::on_dialled(const dialled& message) {
  if (auto answer = helper_.done(message)) send(answer->to, answer->what);
}

// -- state sharing --------------------------------------------------------------------------------

fetch_config volunteer::fetch_on_our_line() const {
  auto fetch = options_.fetch;
  const auto chunk_seconds = 8 * static_cast<double>(fetch.chunk_bytes) / static_cast<double>(here().rate_down());
  fetch.window_total = static_cast<std::uint32_t>(std::clamp(longest_queue_seconds / chunk_seconds, 1.0, 65536.0));
  fetch.window_chunks = std::max(fetch.window_chunks, static_cast<std::uint32_t>(fetch.window_total / fetch.donors));
  return fetch;
}

void volunteer::start_download() {
  if (now() < download_not_before_) return;
  const auto lead = leading();
  const auto gradient_bytes = 4 * pool_->work().step_values();
  const auto behind = lead.epoch - std::min(lead.epoch, state_->epoch);
  // Steps that were missed, if that is less; or if whatever we download instead will be as old when it is here.
  const bool step = shares_steps() && behind > 0 && state_->id != no_step_from_ &&
                    (catching_up_ || behind * gradient_bytes < state_->bytes());
  const bool falls_behind = step && catching_up_ && behind > behind_at_first_ + most_further_behind;
  if (falls_behind || (!step && states_in_vain_ >= most_states_in_vain)) {
    states_in_vain_ = 0;
    catching_up_ = false;
    download_.reset();
    here().observe(download_ended{false, lead.epoch, reason::too_slow, 0, 0, 0});
    const auto pause = 16 * options_.max_refresh * (1 << std::min(pauses_++, 6u));
    download_not_before_ = now() + pause;
    send(dht_, withdraw{progress_key, fmt::format("{:016x}", here().id())});
    enter(mode::joining);
    return try_again_in(pause);
  }
  const bool goes_on = !step && download_ && download_->begun() && !downloading_step_ && !download_->object().is_zero() &&
                       download_->offer().epoch <= lead.epoch;
  auto fetch = fetch_on_our_line();
  const auto bytes = step ? behind * gradient_bytes : state_->bytes();
  // What our line brings in half of the time that the others wait with a round.
  const auto waited_for = static_cast<double>(here().rate_down()) * to_seconds(options_.averaging.matchmaking_time) / 16;
  const bool soon = static_cast<double>(bytes) < waited_for;
  if (!soon && shares_steps()) {
    fetch.reserves = far_reserves;
    fetch.announce_bytes = static_cast<std::uint64_t>(waited_for);
  }
  auto ask = whom_to_ask(goes_on ? others_.peers_from(download_->offer().epoch) : donors(), fetch.donors + fetch.reserves);
  if (ask.empty()) {
    tried_donors_.clear();
    download_not_before_ = now() + options_.max_refresh;
    return set_timer(options_.max_refresh, retry_timer);
  }
  give_back_gradients();
  enter(mode::downloading);
  downloading_step_ = step;
  const bool hollow = pool_->work().hollow();
  if (step)
    download_ = std::make_shared<state_download>(step_object(state_->id), gradient_bytes, 0, hollow);
  else if (!goes_on)
    download_ = std::make_shared<state_download>(lead.state, state_->parameters.size(), state_->optimizer.size(), hollow);
  fetcher_ = spawn<state_fetcher>(std::ref(here()), caf::actor_cast<caf::actor>(this), fetch, std::move(ask), download_);
  // If we shall be there soon, the others may wait for us with the next round: a joiner that is
  // always just too late would catch up for ever. If not, nobody should, until it is nearly here.
  arriving_.reset();
  if (soon) {
    arriving_ = lead;
    publish();
  } else {
    send(dht_, withdraw{progress_key, fmt::format("{:016x}", here().id())});
  }
}

void volunteer::fetch_step() {
  auto ask = whom_to_ask(others_.peers_through(state_->epoch, state_->id), options_.fetch.donors + options_.fetch.reserves);
  if (ask.empty()) return tried_donors_.clear();
  fetching_aside_ = true;
  download_ = std::make_shared<state_download>(step_object(state_->id), 4 * pool_->work().step_values(), 0, pool_->work().hollow());
  fetcher_ = spawn<state_fetcher>(std::ref(here()), caf::actor_cast<caf::actor>(this), fetch_on_our_line(), std::move(ask), download_);
}

std::vector<expected_peer> volunteer::whom_to_ask(std::vector<peer_id> ids, std::size_t most) {
  const auto rank = [this](peer_id id) {
    const auto holds = std::find(holders_.begin(), holders_.end(), id) != holders_.end();
    return std::pair(!holds, ~others_.at(id).what.rate_up);
  };
  std::stable_sort(ids.begin(), ids.end(), [&](peer_id a, peer_id b) { return rank(a) < rank(b); });
  // Records outlive who wrote them: those who could not deliver are not asked again before the others.
  std::erase_if(ids, [&](peer_id id) { return tried_donors_.contains(id) || liars_.contains(id); });
  // Who cannot be reached is a donor only to those that it has dialled, and silent to others: asked when nobody else is left.
  const auto reachable = [&](peer_id id) { return others_.at(id).what.unreachable == 0; };
  const bool some = std::any_of(ids.begin(), ids.end(), reachable);
  const bool dials_only = reach_.known() != reach::unknown && reached() == reached_by::nobody;
  if (some || dials_only || !reach_.settled()) std::erase_if(ids, [&](peer_id id) { return !reachable(id); });
  ids.resize(std::min(ids.size(), most));
  std::vector<expected_peer> out;
  for (auto id : ids) out.push_back({id, others_.at(id).address});
  tried_donors_.insert(ids.begin(), ids.end());
  return out;
}

void volunteer::on_donors_wanted(const donors_wanted& what) {
  if (!sent_by(fetcher_)) return;
  if (fetching_aside_) return send(fetcher_, more_donors{whom_to_ask(others_.peers_through(state_->epoch, state_->id), what.count)});
  // Who has gone on since may have kept it. (What is downloaded is the fetcher's now.)
  auto ids = shares_steps() && what.epoch ? others_.peers_from(*what.epoch) : donors();
  send(fetcher_, more_donors{whom_to_ask(std::move(ids), what.count)});
}

void volunteer::on_download_nears_end(const download_nears_end& what) {
  const auto lead = leading();
  if (mode_ != mode::downloading || what.epoch != lead.epoch || what.state != lead.state) return;
  arriving_ = lead;
  publish();
}

void volunteer::on_download(const download_report& report) {
  if (!sent_by(fetcher_)) return;
  fetcher_ = nullptr;
  const auto epoch = download_->begun() ? download_->offer().epoch : 0;
  here().observe(download_ended{downloading_step_, epoch, report.why, report.bytes, report.rejected, report.donors});
  liars_.insert(report.liars.begin(), report.liars.end());
  if (report.why == reason::none)
    for (const auto& round : report.commits)
      if (std::none_of(uncommitted_.begin(), uncommitted_.end(), [&](const commit& known) { return known.group == round.group; }))
        hand_in(round);
  if (std::exchange(fetching_aside_, false)) {
    const auto got = std::exchange(download_, nullptr);
    return step_fetched(report.why == reason::none ? std::optional(got->step()) : std::nullopt);
  }
  if (mode_ != mode::downloading) return;
  if (report.why == reason::none) {
    holders_ = report.holders;
    if (downloading_step_) return repeat_step();
    const auto state = pool_->intern(std::make_shared<const model_state>(std::exchange(download_, nullptr)->state()));
    if (wants(*state)) {
      ++states_in_vain_;
      return now_at(state, state->bytes());
    }
  } else if (downloading_step_) {
    if (report.why != reason::busy) no_step_from_ = state_->id;
  } else if (report.why == reason::out_of_sync) {
    if (download_->begun()) ++states_in_vain_;
    download_.reset();
  }
  enter(mode::computing);
  publish();
  look_up_progress();
}

bool volunteer::follows_ours(const taken_step& step) {
  const bool fits = step.epoch == state_->epoch + 1 && step.samples >= state_->samples;
  if (!fits) misbehaviour(0, "a step that does not follow ours");
  return fits;
}

void volunteer::repeat_step() {
  step_ = std::exchange(download_, nullptr)->step();
  if (!follows_ours(*step_)) {
    no_step_from_ = state_->id;
    enter(mode::computing);
    return look_up_progress();
  }
  repeated_ = std::make_shared<state_ptr>();
  compute([pool = pool_, before = state_, step = *step_, out = repeated_] {
    *out = pool->step(before, step.gradient, step.after, step.samples - before->samples);
  }, 0, repeat_job);
}

void volunteer::step_repeated() {
  const auto after = std::exchange(repeated_, nullptr);
  if (mode_ != mode::downloading || !after || !step_) return;
  const auto bytes = step_->gradient.size();
  step_->gradient = pool_->gradient_between(state_, *after, std::move(step_->gradient));
  keep_served(state_, std::exchange(step_, std::nullopt));
  // With overlap those who made it may not have gone over to it, and never do.
  now_at(*after, bytes, options_.overlap != overlap::none);
}

void volunteer::now_at(state_ptr state, std::uint64_t bytes, bool of_step) {
  state_ = std::move(state);
  here().observe(adopted{state_->epoch, state_->id, bytes, of_step});
  pool_->offer(state_);  // whose steps were taken in other processes
  tried_donors_.clear();
  adopted_state();
  enter(mode::computing);
  if (in_sync() || !shares_steps()) {
    // If we hear of nobody, that proves nothing: a line that is full loses records, too.
    if (!others_.entries().empty() || !shares_steps()) arrived();
  } else {
    if (!std::exchange(catching_up_, true)) behind_at_first_ = leading().epoch - std::min(leading().epoch, state_->epoch);
    start_download();
    if (mode_ == mode::downloading) return;
  }
  publish();
  look_up_progress();
}

void volunteer::arrived() {
  catching_up_ = false;
  states_in_vain_ = pauses_ = 0;
}

void volunteer::keep_served(const state_ptr& state, std::optional<taken_step> step) { shelf_.put(state, std::move(step), now()); }

void volunteer::on_state_request(const state_request& message) {
  if (!message.reply_to) return misbehaviour(0, "state request without an address");
  const auto refuse = [&](reason why) { send(message.reply_to, state_refused{static_cast<std::uint8_t>(why)}); };
  // Ours is not worth having: whoever asks had better ask somebody else at once.
  if (mode_ == mode::downloading || mode_ == mode::joining || !has_state_) return refuse(reason::out_of_sync);
  const auto object = shelf_.find(message.object, shared_state(), options_.fetch.chunk_bytes);
  if (!object) return refuse(reason::out_of_sync);
  if (here().rare(rare::donor_busy) || !shelf_.admit(message.reply_to, *object, message.reserve != 0, now())) return refuse(reason::busy);
  state_bytes_asked_ = 0;
  auto offer = object->offer();
  offer.commits.assign(uncommitted_.begin(), uncommitted_.end());
  send(message.reply_to, std::move(offer));
}

void volunteer::on_state_hold(const state_hold& message) {
  if (!message.reply_to) return misbehaviour(0, "state hold without an address");
  if (message.done != 0) return shelf_.release(message.reply_to);
  shelf_.renew(message.reply_to, message.object, now());
}

void volunteer::on_chunk_request(const state_chunk_request& message) {
  if (!message.reply_to) return misbehaviour(0, "state chunk request without an address");
  const auto object = shelf_.find(message.object, shared_state(), options_.fetch.chunk_bytes);
  state_chunk answer{message.object, message.offset, {}};
  if (object) {
    const auto refuse = [&] { send(message.reply_to, state_refused{static_cast<std::uint8_t>(reason::busy)}); };
    if (!shelf_.admit(message.reply_to, *object, false, now())) return refuse();
    answer.data = object->bytes(message.offset, std::min<std::uint64_t>(message.count, max_payload_bytes));
    const auto before = std::exchange(state_bytes_asked_, state_bytes_asked_ + answer.data.size());
    if (before < object->size() / 2 && state_bytes_asked_ >= object->size() / 2) {
      here().probe(probes::state_half_sent);
      if (here().rare(rare::donor_stops)) return refuse();
    }
  }
  send(message.reply_to, std::move(answer));
}

}  // namespace shoal::actors
