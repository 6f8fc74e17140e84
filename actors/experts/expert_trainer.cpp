#include "actors/experts/expert_trainer.hpp"

#include "actors/averaging/group.hpp"
#include "actors/dht/host_record.hpp"
#include "actors/dht/messages.hpp"
#include "actors/inference/activations.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace shoal::actors {

namespace {

// A backward pass takes twice the time of a forward one.
constexpr double forward_share = 1.0 / 3, backward_share = 2.0 / 3;

// A host that sent wrong values is left alone for so many times as long as a silent one.
constexpr unsigned wrong_bans = 40;

/// So a slow host that is steady is waited for, and a dead one costs far less than the detection of
/// its death.
adaptive_deadline within(duration most) {
  return {most / 10, most};
}

} // namespace

expert_trainer::expert_trainer(caf::actor_config& config, host& on, expert_trainer_config options)
    : protocol_actor(config, on), options_(std::move(options)),
      trunk_(std::make_shared<const std::vector<float>>(
          options_.net->initial_parameters(options_.seed))),
      optimizer_state_(optimizer_state_size(options_.optimizer, trunk_->size())),
      cache_(options_.cache), sizes_{size_bound(options_.most_growth),
                                     size_bound(options_.most_growth)},
      answer_times_{host_times(within(options_.timeout)), host_times(within(options_.timeout))},
      draws_(on.random_stream("experts.sharing")), jitter_(on.random_stream("experts.jitter")) {
  if (options_.rounds)
    rounds_.emplace(*options_.rounds, options_.share_every, on.random_stream("experts.place"));
  if (!options_.trunk) return;
  SHOAL_CHECK(options_.trunk->parameters.size() == trunk_->size() &&
                  options_.trunk->optimizer.size() == optimizer_state_.size(),
              "a trunk is that of the network");
  trunk_ = std::make_shared<const std::vector<float>>(std::move(options_.trunk->parameters));
  optimizer_state_ = std::move(options_.trunk->optimizer);
  steps_ = options_.trunk->steps;
}

void expert_trainer::on_exit() {
  if (group_) send_exit(group_, caf::exit_reason::user_shutdown);
  group_ = nullptr;
  rounds_.reset();
  options_.dht = nullptr;
  options_.samples = nullptr;
  options_.shard.find_shard = nullptr;
  options_.wants_model = nullptr;
  options_.on_model = nullptr;
  stream_.reset();
  cache_ = expert_cache({});
  calls_.clear();
  late_.clear();
  answered_.clear();
  gathers_.clear();
  others_.clear();
  pass_.reset();
  protocol_actor::on_exit();
}

caf::behavior expert_trainer::make_behavior() {
  if (options_.samples) {
    set_timer(options_.step_time, begin);
    set_timer(duration{}, renewal);
  } else {
    begin_run();
  }
  if (rounds_)
    set_timer(rounds_->until_next(here().utc_ns()), sharing);
  else if (options_.share_every > duration{})
    set_timer(options_.share_every, sharing);
  return {
      [this](const expert_answer& m) { receive(m); },
      [this](const expert_refused& m) {
        end_lateness(m.request);
        const auto found = calls_.find(m.request);
        if (found == calls_.end() || found->second.to.peer != sender_peer()) return;
        lose(m.request, m.why > 0 && m.why <= static_cast<std::uint8_t>(expert_refusal::stale)
                            ? static_cast<expert_refusal>(m.why)
                            : expert_refusal::wrong_values);
      },
      [this](const found& m) { receive(m); },
      [this](const trunk_share& m) { receive(m); },
      [this](const trunk_wanted& m) {
        if (!is_senders(m.reply_to)) return sender_misbehaves("a trunk that goes to another host");
        if (is_in_run()) send(m.reply_to, trunk_share{steps_, payload{*trunk_}});
      },
      [this](const round_report& m) { round_ended(*m.result); },
      [this](const samples& m) { receive_samples(m); },
      [this](const proven_samples& m) { receive_samples(m); },
      [this](const proven_copies& m) { receive_samples(m); },
      [this](const lease_lost& m) { receive(m); },
      [this](const commit_received& m) { receive(m); },
      [this](const not_primary& m) { receive(m); },
      [this](const work_done&) {
        if (const auto then = std::exchange(then_, nullptr)) (this->*then)();
      },
      [this](const tick& t) {
        switch (t.kind) {
        case begin:
          start_step();
          break;
        case late:
          if (calls_.contains(t.token)) be_late(t.token);
          break;
        case silent:
          end_silence(t.token);
          break;
        case pausing:
          retried_ = 0;
          if (pass_) search_all_rows();
          break;
        case renewal:
          cache_.drop_old(here().utc_ns(), now());
          send(options_.dht, store{expert_trainers_key(options_.model),
                                   host_record(here(), address(), {}, options_.record_lifetime)});
          set_timer(options_.renew, renewal);
          break;
        case sharing:
          if (rounds_) return start_round();
          share_token_ = ++last_token_;
          send(options_.dht, lookup{expert_trainers_key(options_.model), address(), share_token_});
          set_timer(options_.share_every, sharing);
          break;
        case refreshing:
          refresh();
          break;
        case shard_timer:
          look_for_shard();
          break;
        case trunk_timer:
          if (adopts_trunk_) ask_for_trunk();
          break;
        case drain:
          leave();
          break;
        }
      },
  };
}

expert_id expert_trainer::in_layer(const expert_place& place) const {
  return {static_cast<std::uint32_t>(pass_->layer()), place};
}

// -- forward --------------------------------------------------------------------------------------

void expert_trainer::start_step() {
  if (pass_ || begun_ || draining_) return;
  if (shared_ > 0) {
    // The mean of this trainer's trunk and those of others.
    auto mean = *trunk_;
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] = (mean[i] + shared_sum_[i]) / static_cast<float>(shared_ + 1);
    trunk_ = std::make_shared<const std::vector<float>>(std::move(mean));
    shared_ = 0;
    shared_by_.clear();
  }
  if (options_.evaluate_every > 0 && !options_.held_out.empty() &&
      steps_ % options_.evaluate_every == 0 && !std::exchange(evaluates_, true))
    return start_pass(options_.held_out, true);
  if (options_.steps > 0 && steps_ >= options_.steps) return;
  if (options_.samples) return start_pass(options_.samples(steps_), false);
  std::vector<std::byte> drawn;
  if (take_samples(drawn)) start_pass(std::move(drawn), false);
}

void expert_trainer::compute_trunk(double share, std::function<void()> work,
                                   void (expert_trainer::*then)()) {
  if (options_.trunk_time == duration{}) {
    work();
    return (this->*then)();
  }
  auto seconds = share * to_seconds(options_.trunk_time);
  if (options_.jitter > 0) seconds *= std::max(0.1, jitter_.normal(1, options_.jitter));
  then_ = then;
  here().run("trunk", std::move(work), from_seconds(seconds), caf::actor_cast<caf::actor>(this), 0);
}

void expert_trainer::start_pass(std::vector<std::byte> samples, bool evaluates) {
  evaluates_ = evaluates;
  backward_ = false;
  used_ = trunk_;
  seen_ = {};
  seen_.step = steps_ + 1;
  began_ = now();
  answered_.assign(options_.net->shape().layers, {});
  retried_ = paused_ = 0;
  // The compute thread may outlive this actor, so the job keeps all that it uses.
  auto made = std::make_shared<std::shared_ptr<learn::mixture_pass>>();
  begun_ = made;
  compute_trunk(
      forward_share,
      [made, net = options_.net, trunk = used_, drawn = std::move(samples)]() mutable {
        *made = std::make_shared<learn::mixture_pass>(*net, *trunk, std::move(drawn));
      },
      &expert_trainer::enter_first_layer);
}

void expert_trainer::enter_first_layer() {
  pass_ = std::move(*std::exchange(begun_, nullptr));
  enter_layer();
}

void expert_trainer::enter_layer() {
  chosen_.assign(pass_->rows(), {});
  retried_ = 0;
  search_all_rows();
}

void expert_trainer::search_all_rows() {
  std::vector<std::size_t> all(pass_->rows());
  std::iota(all.begin(), all.end(), std::size_t{0});
  search_layer(all);
}

void expert_trainer::search_layer(const std::vector<std::size_t>& rows) {
  searches_.clear();
  const auto keys = options_.net->gate().keys();
  for (const auto row : rows)
    searches_.push_back(
        {row, expert_search(expert_search::scores_of(options_.net->gate(),
                                                     pass_->scores().subspan(row * keys, keys)),
                            options_.search)});
  look_up_began_ = now();
  go_on_searching();
}

void expert_trainer::go_on_searching() {
  std::set<expert_id> needed;
  for (auto& each : searches_)
    while (const auto prefix = each.by.wanted()) {
      const auto which = in_layer(*prefix);
      if (cache_.needs(which, now())) {
        needed.insert(which);
        break;
      }
      each.by.give(cache_.alive(which, here().utc_ns(), now()));
    }
  for (const auto& each : needed) {
    if (!reading_.insert(each).second) continue;
    ++seen_.look_ups;
    look_ups_[++last_token_] = each;
    send(options_.dht,
         lookup{prefix_key(options_.model, each.layer, each.place), address(), last_token_});
  }
  if (!needed.empty()) return;
  seen_.look_up_time += now() - look_up_began_;
  call_experts();
}

void expert_trainer::receive(const found& m) {
  if (m.token == share_token_) return share(m);
  if (stream_ && m.token == trainers_token_) return read_trainers(m);
  if (stream_ && m.token == shard_token) return found_shard(m);
  const auto at = look_ups_.find(m.token);
  if (at == look_ups_.end()) return;
  cache_.read(at->second, m, here(), now());
  reading_.erase(at->second);
  look_ups_.erase(at);
  if (pass_ && !backward_ && !searches_.empty()) go_on_searching();
}

void expert_trainer::call_experts() {
  std::vector<std::vector<learn::expert_choice>> asked(chosen_.size());
  for (const auto& each : std::exchange(searches_, {})) {
    for (const auto& found : each.by.best()) asked[each.row].push_back({found.place});
    chosen_[each.row] = asked[each.row];
  }
  for (auto& [place, rows] : learn::rows_by_expert(asked)) {
    const auto holder = cache_.holder(in_layer(place), here().utc_ns(), now());
    if (!holder) {
      ++seen_.calls;
      ++seen_.lost;
      continue;
    }
    place_calls(place, rows, *holder);
  }
  if (calls_.empty()) layer_answered();
}

void expert_trainer::place_calls(const expert_place& place, std::span<const learn::routed_row> rows,
                                 const expert_holder& to) {
  while (!rows.empty()) {
    const auto some = rows.first(std::min(rows.size(), most_expert_rows));
    rows = rows.subspan(some.size());
    ++seen_.calls;
    parts_ += backward_ ? 1 : 0;
    place_call(place, {some.begin(), some.end()}, to, ++last_token_, false, now());
  }
}

void expert_trainer::watch(const expert_holder& holder) {
  if (watched_.emplace(caf::actor_cast<caf::actor_addr>(holder.address), holder.peer).second)
    monitor(holder.address);
}

void expert_trainer::place_call(const expert_place& place, std::vector<learn::routed_row> rows,
                                const expert_holder& to, std::uint64_t request, bool again,
                                duration began) {
  watch(to);
  const auto pack = [&](std::vector<float> values) {
    return pack_activations(kernels::codec::none, std::move(values), options_.net->ends().width(),
                            options_.sized);
  };
  expert_pass m;
  m.reply_to = address();
  m.request = request;
  m.layer = static_cast<std::uint32_t>(pass_->layer());
  m.place = place;
  m.rows = static_cast<std::uint32_t>(rows.size());
  auto x = pack(pass_->inputs_of(rows));
  auto gradient = backward_ ? pack(pass_->gradients_of(rows)) : result<payload>(payload{});
  if (calls_.empty() && !again) calls_began_ = now();
  auto& call = calls_[request];
  call = {place, std::move(rows), to, again, began};
  // Values that are not finite reach no expert. The call is lost after its caller has made others.
  if (!x || !gradient) return set_timer(duration{}, late, request);
  m.x = std::move(*x);
  m.gradient = std::move(*gradient);
  if (backward_) m.version = answered_[pass_->layer()].at(place).version;
  call.sent = true;
  send(to.address, std::move(m));
  // A measurement has far more rows than a step, so earlier answers say nothing about its times.
  set_timer(evaluates_ ? options_.timeout : answer_times_[backward_ ? 1 : 0].deadline(to.peer),
            late, request);
}

void expert_trainer::receive(const expert_answer& m) {
  end_lateness(m.request);
  const auto at = calls_.find(m.request);
  if (at == calls_.end() || at->second.to.peer != sender_peer()) return;
  const auto width = options_.net->ends().width();
  const auto values = unpack_activations(kernels::codec::none, m.values, at->second.rows.size(),
                                         width, options_.sized);
  if (!values) {
    sender_misbehaves(values.error());
    return lose(m.request, expert_refusal::wrong_values);
  }
  // Relative to what the host has computed them from, the sizes of all steps compare.
  const auto from = size_of_values(backward_ ? pass_->gradients_of(at->second.rows)
                                             : pass_->inputs_of(at->second.rows));
  if (from > 0 &&
      !sizes_[backward_ ? 1 : 0].accepts(at->second.to.peer, size_of_values(*values) / from))
    return lose(m.request, expert_refusal::too_large);
  const auto done = std::move(at->second);
  calls_.erase(at);
  parts_done_ += backward_ ? 1 : 0;
  const auto time = now() - done.began;
  if (!evaluates_) answer_times_[backward_ ? 1 : 0].answered(done.to.peer, time);
  if (!seen_.slowest || time > seen_.slowest_time) {
    seen_.slowest = in_layer(done.place);
    seen_.slowest_backward = backward_;
    seen_.slowest_began = done.began;
    seen_.slowest_time = time;
  }
  auto& into = backward_ ? pass_->chosen() : chosen_;
  for (std::size_t i = 0; i < done.rows.size(); ++i) {
    auto& one = into[done.rows[i].row][done.rows[i].choice];
    const auto first = values->begin() + static_cast<std::ptrdiff_t>(i * width);
    (backward_ ? one.gradient : one.output)
        .assign(first, first + static_cast<std::ptrdiff_t>(width));
  }
  if (!backward_) answered_[pass_->layer()][done.place] = {done.to, m.version};
  if (calls_.empty()) all_answered();
}

void expert_trainer::all_answered() {
  seen_.waiting_time += now() - calls_began_;
  backward_ ? go_back() : layer_answered();
}

void expert_trainer::be_late(std::uint64_t request) {
  auto& call = calls_.at(request);
  if (!call.sent) return leave_out(request, expert_refusal::wrong_values);
  if (backward_ && !call.again) {
    auto first = std::move(call);
    calls_.erase(request);
    return place_call(first.place, std::move(first.rows), first.to, request, true, first.began);
  }
  const auto left = call.began + options_.timeout - now();
  if (left <= duration{}) return lose(request, expert_refusal::none);
  late_[request] = {call.to.peer, backward_, call.began};
  cache_.hosts().silent(call.to.peer);
  set_timer(left, silent, request);
  leave_out(request, expert_refusal::none);
}

void expert_trainer::end_lateness(std::uint64_t request) {
  const auto at = late_.find(request);
  if (at == late_.end() || at->second.to != sender_peer()) return;
  answer_times_[at->second.backward ? 1 : 0].answered(at->second.to, now() - at->second.began);
  cache_.hosts().heard(at->second.to);
  late_.erase(at);
}

void expert_trainer::end_silence(std::uint64_t request) {
  const auto at = late_.find(request);
  if (at == late_.end()) return;
  cache_.hosts().failed(at->second.to, now());
  late_.erase(at);
}

void expert_trainer::lose(std::uint64_t request, expert_refusal why) {
  const auto& lost = calls_.at(request);
  if (why == expert_refusal::unknown_expert)
    cache_.moved(in_layer(lost.place), lost.to.peer);
  else
    cache_.hosts().failed(lost.to.peer, now(), why == expert_refusal::too_large ? wrong_bans : 1);
  leave_out(request, why);
}

void expert_trainer::leave_out(std::uint64_t request, expert_refusal why) {
  const auto& lost = calls_.at(request);
  here().observe(expert_call_lost{in_layer(lost.place), lost.to.peer, backward_, why});
  ++seen_.lost;
  calls_.erase(request);
  if (calls_.empty()) all_answered();
}

void expert_trainer::on_down(const caf::actor_addr& whom) {
  if (stream_) run_lost(whom);
  const auto at = watched_.find(whom);
  if (at == watched_.end()) return;
  const auto peer = at->second;
  watched_.erase(at);
  cache_.hosts().gone(peer, here().utc_ns());
  std::erase_if(late_, [&](const auto& each) { return each.second.to == peer; });
  for (auto& each : answer_times_) each.forget(peer);
  std::vector<std::uint64_t> lost;
  for (const auto& [request, call] : calls_)
    if (call.to.peer == peer) lost.push_back(request);
  for (const auto request : lost)
    if (calls_.contains(request)) lose(request, expert_refusal::none);
}

void expert_trainer::layer_answered() {
  std::vector<std::size_t> without;
  for (std::size_t n = 0; n < chosen_.size(); ++n)
    if (std::none_of(chosen_[n].begin(), chosen_[n].end(),
                     [](const auto& each) { return !each.output.empty(); }))
      without.push_back(n);
  if (!without.empty() && retried_++ < options_.retries) return search_layer(without);
  if (without.size() == chosen_.size() && paused_ < options_.pauses) {
    ++paused_;
    return set_timer(options_.pause, pausing);
  }
  paused_ = 0;
  pass_->advance(std::exchange(chosen_, {}));
  if (pass_->layer() < options_.net->shape().layers) return enter_layer();
  if (evaluates_) {
    const auto judged = pass_->judge();
    here().observe(expert_evaluated{steps_, judged.loss, judged.right, pass_->rows()});
    pass_.reset();
    // `evaluates_` stays true, so that this step is not evaluated again.
    return set_timer(options_.step_time, begin);
  }
  const auto judged = std::make_shared<double>(0);
  left_ = judged;
  compute_trunk(
      backward_share / 2,
      [judged, pass = pass_, net = options_.net, trunk = used_] { *judged = pass->leave().loss; },
      &expert_trainer::turn_back);
}

void expert_trainer::turn_back() {
  loss_ = *std::exchange(left_, nullptr);
  backward_ = true;
  call_back();
}

// -- backward -------------------------------------------------------------------------------------

void expert_trainer::call_back() {
  while (true) {
    auto& answered = answered_[pass_->layer()];
    for (auto& [place, rows] : learn::rows_by_expert(pass_->chosen())) {
      const auto found = answered.find(place);
      // A retried row may have found an expert that did not answer the others.
      std::erase_if(rows, [&](const auto& each) {
        return pass_->chosen()[each.row][each.choice].output.empty();
      });
      if (found == answered.end() || rows.empty()) continue;
      place_calls(place, rows, found->second.holder);
    }
    if (!calls_.empty()) return;
    if (pass_->layer() == 0) break;
    pass_->retreat();
  }
  go_back();
}

void expert_trainer::go_back() {
  // Below the first layer is the entrance.
  if (pass_->layer() > 0) {
    pass_->retreat();
    return call_back();
  }
  compute_trunk(
      backward_share / 2, [pass = pass_, net = options_.net, trunk = used_] { pass->retreat(); },
      &expert_trainer::finish_step);
}

void expert_trainer::finish_step() {
  if (kernels::all_finite(pass_->gradient())) {
    auto next = *trunk_;
    optimizer_step(options_.optimizer, steps_ + 1, pass_->gradient(), next, optimizer_state_);
    trunk_ = std::make_shared<const std::vector<float>>(std::move(next));
    ++parts_done_;
  }
  ++parts_;
  ++steps_;
  seen_.loss = loss_;
  seen_.unanswered = pass_->unanswered();
  seen_.time = now() - began_;
  here().observe(seen_);
  pass_.reset();
  backward_ = false;
  if (stream_) commit_step();
  set_timer(options_.step_time, begin);
}

// -- sharing --------------------------------------------------------------------------------------

void expert_trainer::share(const found& m) {
  std::vector<caf::actor> others;
  for (const auto& each : m.records)
    if (each->address &&
        here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address)) != here().id())
      others.push_back(each->address);
  if (others.empty() || draining_) return;
  send(others[draws_.below(others.size())], trunk_share{steps_, payload{*trunk_}});
}

void expert_trainer::receive(const trunk_share& m) {
  constexpr std::size_t most_between_steps = 64;
  if (m.values.is_size_only() || m.values.size() != trunk_->size() * sizeof(float))
    return sender_misbehaves("a trunk of another size");
  const auto values = unpack_activations(kernels::codec::none, m.values, 1, trunk_->size());
  if (!values) return sender_misbehaves(values.error());
  if (options_.most_growth > 0 &&
      size_of_values(*values) > options_.most_growth * size_of_values(*trunk_))
    return sender_misbehaves("a trunk is far larger than this trainer's");
  if (adopts_trunk_) {
    if (sender_peer() == asked_for_trunk_) adopt(*values);
    return;
  }
  // With rounds, no trainer shares its trunk unasked.
  if (rounds_ || shared_ >= most_between_steps || !shared_by_.insert(sender_peer()).second) return;
  if (shared_ == 0) shared_sum_.assign(trunk_->size(), 0);
  ++shared_;
  for (std::size_t i = 0; i < values->size(); ++i) shared_sum_[i] += (*values)[i];
}

void expert_trainer::start_round() {
  set_timer(rounds_->until_next(here().utc_ns()), sharing);
  if (group_ || !is_in_run() || is_at_end() || draining_ || others_.empty()) return;
  auto request = rounds_->begin(here(), trunk_, epoch_, options_.dht);
  group_ = spawn<group_actor>(std::ref(here()), caf::actor_cast<caf::actor>(this),
                              rounds_->averaging(), std::move(request));
}

void expert_trainer::round_ended(const round_result& result) {
  group_ = nullptr;
  if (auto next = rounds_->end(result, *trunk_))
    trunk_ = std::make_shared<const std::vector<float>>(std::move(*next));
}

} // namespace shoal::actors
