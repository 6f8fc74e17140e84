#include "actors/experts/expert_server.hpp"

#include "actors/dht/host_record.hpp"
#include "actors/dht/messages.hpp"
#include "actors/experts/probes.hpp"
#include "actors/inference/activations.hpp"
#include "actors/observe.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

// A host that comes within these epochs begins its experts at once. Hosts of a new swarm do not all
// come at the same time, and an expert has not learnt much by then.
constexpr std::uint64_t new_epochs = 2;

/// The number of an expert on its grid, which names the stream of its initial parameters.
std::uint64_t number_of(const expert_place& place, const std::vector<std::uint32_t>& grid) {
  std::uint64_t out = 0;
  for (std::size_t d = 0; d < place.size(); ++d) out = out * grid[d] + place[d];
  return out;
}

} // namespace

expert_server::expert_server(caf::actor_config& config, host& on, expert_server_config options)
    : protocol_actor(config, on), options_(std::move(options)),
      pools_(options_.block->width(), options_.most_rows,
             {options_.most_waiting, options_.most_waiting_bytes}),
      hosts_({.record_lifetime = options_.record_lifetime}),
      // Servers that begin together would otherwise flood the DHT together.
      phase_(0.5 + stream(options_.seed, "experts.phase", on.id()).uniform()),
      jitter_(on.random_stream("experts.jitter")), copy_sizes_(options_.most_growth),
      row_sizes_(options_.most_growth), gradient_sizes_(options_.most_growth),
      claims_(options_.forget_after) {
  for (const auto* some : {&options_.experts, &options_.hand})
    for (const auto& each : *some)
      SHOAL_CHECK(is_on_grid(each.layer, each.place), "a server's experts are on the grid");
}

void expert_server::on_exit() {
  options_.dht = nullptr;
  options_.initial = nullptr;
  servers_.clear();
  experts_.clear();
  copies_.clear();
  running_.reset();
  pools_ = task_pools(1, 1, {1, 1});
  protocol_actor::on_exit();
}

caf::behavior expert_server::make_behavior() {
  for (const auto& each : std::exchange(options_.experts, {})) hold(each, fresh(each), false);
  publish();
  if (options_.epoch_of > 0) {
    here().observe(phase_changed{peer_phase::joining, 0, {}});
    look_for_hand();
  }
  set_timer(from_seconds(phase_ * to_seconds(options_.renew) / 2), renewal);
  set_timer(options_.copy_every / 4, copying);
  return {
      [this](const expert_pass& m) { receive(m); },
      [this](const expert_copy& m) { receive(m); },
      [this](const expert_wanted& m) { receive(m); },
      [this](const expert_answer& m) { receive(m); },
      [this](const expert_refused& m) {
        claim_ended(claims_.answered(sender_peer(), m.request, false, now()));
      },
      [this](const found& m) { receive(m); },
      [this](const work_done&) { computed(); },
      [this](const tick& t) {
        switch (t.kind) {
        case renewal:
          hosts_.drop_old(here().utc_ns(), now());
          publish();
          read_own_prefixes();
          if (options_.epoch_of > 0) look_for_hand();
          set_timer(options_.renew, renewal);
          break;
        case copying:
          // The answer names the servers that get the copies.
          copies_are_due_ = true;
          ask(expert_hosts_key(options_.model), question::servers, {});
          check_owners();
          set_timer(from_seconds(std::exchange(phase_, 1) * to_seconds(options_.copy_every)),
                    copying);
          break;
        case offer_over:
          if (const auto found = revivals_.find(t.token); found != revivals_.end())
            ask(revival_key(options_.model, found->second), question::offers, found->second);
          break;
        case check_again:
          if (const auto found = revivals_.find(t.token); found != revivals_.end()) {
            const auto which = found->second;
            revivals_.erase(found);
            if (const auto copy = copies_.find(which);
                copy != copies_.end() && copy->second.revival == t.token) {
              copy->second.revival = 0;
              ask_for_holders(parent_of(which));
            }
          }
          break;
        case look_again:
          if (!met_trainers_) look_for_hand();
          break;
        case claim_late:
          claim_ended(claims_.late(t.token, now()));
          break;
        case drain:
          draining_ = true;
          break;
        }
      },
  };
}

std::shared_ptr<const expert_state> expert_server::fresh(const expert_id& which) const {
  if (options_.initial) return std::make_shared<const expert_state>(options_.initial(which));
  auto state = std::make_shared<expert_state>();
  state->parameters = options_.block->initial_parameters(
      stream(options_.seed, "experts.initial", which.layer, number_of(which.place, options_.grid))
          .next());
  state->optimizer.resize(optimizer_state_size(options_.optimizer, state->parameters.size()));
  return state;
}

bool expert_server::is_on_grid(std::uint32_t layer, const expert_place& place) const {
  if (layer >= options_.layers || place.size() != options_.grid.size()) return false;
  for (std::size_t d = 0; d < place.size(); ++d)
    if (place[d] >= options_.grid[d]) return false;
  return true;
}

// -- passes ---------------------------------------------------------------------------------------

void expert_server::receive(const expert_pass& m) {
  if (!is_senders(m.reply_to)) return sender_misbehaves("a pass whose answer goes to another host");
  here().probe(expert_probes::pass_received);
  expert_task task;
  task.key = {sender_peer(), m.request};
  task.reply_to = m.reply_to;
  task.whose = sender_member();
  task.request = m.request;
  task.version = m.version;
  task.came = now();
  const expert_id which{m.layer, m.place};
  const auto expert = experts_.find(which);
  if (expert == experts_.end()) return refuse(task, expert_refusal::unknown_expert);
  if (m.rows == 0 || m.rows > options_.most_rows) return refuse(task, expert_refusal::wrong_values);
  const auto width = options_.block->width();
  const bool backward = !m.gradient.empty();
  if (backward) {
    const auto seen = log_.begin(task.key);
    if (seen == request_log::seen::underway) return;
    if (seen == request_log::seen::answered) {
      here().observe(expert_repeat_answered{m.request});
      return send(m.reply_to,
                  expert_answer{m.request, expert->second.state->steps, log_.answer(task.key)});
    }
  }
  const auto refuse_new = [&](expert_refusal why) {
    if (backward) log_.refused(task.key);
    refuse(task, why);
  };
  expert->second.called = now();
  const auto steps = expert->second.state->steps;
  if (backward && options_.most_staleness > 0 && steps > m.version + options_.most_staleness)
    return refuse_new(expert_refusal::stale);
  auto x = unpack_activations(kernels::codec::none, m.x, m.rows, width, options_.sized);
  if (!x) return refuse_new(expert_refusal::wrong_values);
  task.x = std::move(*x);
  if (backward) {
    auto gradient =
        unpack_activations(kernels::codec::none, m.gradient, m.rows, width, options_.sized);
    if (!gradient) return refuse_new(expert_refusal::wrong_values);
    task.gradient = std::move(*gradient);
    // Nodes of one member are one trainer.
    const auto trainer = task.whose.high;
    if (!row_sizes_.accepts(trainer, size_of_values(task.x)) ||
        !gradient_sizes_.accepts(trainer, size_of_values(task.gradient)))
      return refuse_new(expert_refusal::wrong_values);
  }
  if (!pools_.has_room(task)) return refuse_new(expert_refusal::too_many);
  pools_.add(which, std::move(task));
  start_batch();
}

void expert_server::refuse(const expert_task& what, expert_refusal why) {
  send(what.reply_to, expert_refused{what.request, static_cast<std::uint8_t>(why)});
}

void expert_server::start_batch() {
  if (running_) return;
  auto next = pools_.next();
  if (!next) return;
  auto work = std::make_shared<expert_work>();
  work->block = options_.block;
  work->optimizer = options_.optimizer;
  work->state = experts_.at(next->which).state;
  work->batch = std::move(*next);
  std::size_t rows = 0;
  for (const auto& each : work->batch.tasks) rows += each.x.size() / options_.block->width();
  auto time = options_.batch_time +
              options_.row_time * static_cast<std::int64_t>(rows * (work->batch.backward ? 3 : 1));
  if (options_.jitter > 0)
    time = from_seconds(to_seconds(time) * std::max(0.1, jitter_.normal(1, options_.jitter)));
  for (const auto& each : work->batch.tasks)
    work->queued = std::max(work->queued, now() - each.came);
  work->time = time;
  running_ = work;
  here().run(
      "expert", [work] { compute(*work); }, time, caf::actor_cast<caf::actor>(this), 0);
}

void expert_server::computed() {
  if (!running_) return;
  const auto done = std::exchange(running_, nullptr);
  const auto expert = experts_.find(done->batch.which);
  expert_batch_done seen{
      done->batch.which, done->batch.backward, done->batch.tasks.size(), 0, 0, 0};
  here().probe(done->batch.backward ? expert_probes::step_made : expert_probes::forward_computed);
  // An expert that was given up meanwhile makes no step here.
  const bool gone = expert == experts_.end();
  const auto before = gone ? 0 : expert->second.state->steps;
  if (!gone) expert->second.state = done->state;
  seen.steps = gone ? 0 : expert->second.state->steps;
  for (std::size_t i = 0; i < done->batch.tasks.size(); ++i) {
    const auto& task = done->batch.tasks[i];
    seen.rows += task.x.size() / options_.block->width();
    if (gone || done->results[i].empty()) {
      if (done->batch.backward) log_.refused(task.key);
      refuse(task, gone ? expert_refusal::unknown_expert : expert_refusal::wrong_values);
      continue;
    }
    options_.conduct->computed_layers(done->results[i]);
    auto packed = pack_activations(kernels::codec::none, std::move(done->results[i]),
                                   options_.block->width(), options_.sized);
    if (!packed) { // by the host's conduct only
      if (done->batch.backward) log_.refused(task.key);
      refuse(task, expert_refusal::wrong_values);
      continue;
    }
    if (done->batch.backward) {
      seen.staleness += before > task.version ? before - task.version : 0;
      log_.done(task.key, *packed);
    }
    send(task.reply_to, expert_answer{task.request, done->state->steps, std::move(*packed)});
  }
  here().probe(expert_probes::answer_sent);
  seen.queued = done->queued;
  seen.time = done->time;
  here().observe(seen);
  start_batch();
}

// -- records --------------------------------------------------------------------------------------

void expert_server::hold(const expert_id& which, std::shared_ptr<const expert_state> state,
                         bool revived) {
  here().observe(expert_held{which, state->steps, revived});
  experts_[which] = {std::move(state), {}};
  copies_.erase(which);
  hosts_.forget_offers(which);
}

void expert_server::announce(const std::string& key, payload value, duration lifetime) {
  send(options_.dht, store{key, host_record(here(), address(), std::move(value), lifetime)});
}

void expert_server::publish() {
  std::map<std::string, std::map<std::uint32_t, std::uint64_t>> all;
  for (const auto& [which, expert] : experts_) {
    expert_place prefix;
    for (std::size_t d = 0; d < which.place.size(); ++d) {
      auto& under = all[prefix_key(options_.model, which.layer, prefix)];
      under[which.place[d]] = d + 1 == which.place.size() ? expert.state->steps : 0;
      prefix.push_back(which.place[d]);
    }
  }
  std::set<std::string> now_announced;
  for (const auto& [key, coordinates] : all) {
    std::vector<live_coordinate> list;
    for (const auto& [at, steps] : coordinates) list.push_back({at, steps});
    announce(key, pack_coordinates(list), options_.record_lifetime);
    now_announced.insert(key);
  }
  for (const auto& key : announced_)
    if (!now_announced.contains(key)) send(options_.dht, withdraw{key, host_subkey(here())});
  announced_ = std::move(now_announced);
  announce(expert_hosts_key(options_.model), {}, options_.record_lifetime);
}

void expert_server::ask(const std::string& key, question why, const expert_id& about) {
  asked_[++last_token_] = {why, about};
  send(options_.dht, lookup{key, address(), last_token_});
}

void expert_server::receive(const found& m) {
  const auto at = asked_.find(m.token);
  if (at == asked_.end()) return;
  const auto [why, about] = at->second;
  asked_.erase(at);
  switch (why) {
  case question::servers:
    servers_.clear();
    for (const auto& each : m.records) {
      if (!each->address) continue;
      const auto peer = here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address));
      if (peer != 0 && peer != here().id()) servers_[peer] = {each->address, each->expires_utc_ns};
    }
    if (std::exchange(copies_are_due_, false)) send_copies();
    break;
  case question::own_prefix:
    give_up_older(about, m);
    break;
  case question::trainers:
    read_trainers(m);
    break;
  case question::hand:
    take_hand(about, m);
    break;
  case question::holders: {
    expert_dictionary records(m, here());
    for (auto& [which, copy] : copies_) {
      if (parent_of(which) != about || copy.owner_address || copy.revival != 0) continue;
      const auto [holder, is_open] = holder_of(which, records);
      if (is_open) continue;
      // A host that began the expert anew did not know of this copy.
      if (holder && (holder->steps > 0 || copy.state->steps == 0)) {
        copy.no_records = false;
        set_owner(which, copy, holder->peer, holder->address);
        continue;
      }
      copy.revival = ++last_token_;
      revivals_[copy.revival] = which;
      // An answer without any record may be a look-up that failed, so the server looks again.
      if (m.records.empty() && !std::exchange(copy.no_records, true))
        set_timer(options_.offer_time, check_again, copy.revival);
      else
        offer(which, copy.revival);
    }
    break;
  }
  case question::offers:
    decide(about, m);
    break;
  }
}

void expert_server::read_own_prefixes() {
  std::set<expert_id> prefixes;
  for (const auto& [which, expert] : experts_) prefixes.insert(parent_of(which));
  for (const auto& each : prefixes)
    ask(prefix_key(options_.model, each.layer, each.place), question::own_prefix, each);
}

void expert_server::give_up_older(const expert_id& prefix, const found& m) {
  expert_dictionary records(m, here());
  records.drop(here().id());
  bool changed = false;
  for (auto at = experts_.begin(); at != experts_.end();) {
    const auto& [which, expert] = *at;
    const auto mine = expert.state->steps;
    const bool is_called = expert.called && now() - *expert.called < options_.renew;
    const auto leads = [&](const auto& other) {
      return other && (other->steps > mine || (other->steps == mine && other->peer < here().id()));
    };
    const bool may_go = parent_of(which) == prefix && !is_called && leads(claim_of(which, records));
    const auto other = may_go ? holder_of(which, records).holder : std::nullopt;
    if (!leads(other)) {
      ++at;
      continue;
    }
    here().observe(expert_given_up{which, mine});
    if (copies_.size() < options_.most_copies) {
      auto& copy = copies_[which];
      copy.state = expert.state;
      set_owner(which, copy, other->peer, other->address);
    }
    for (const auto& each : pools_.drop(which)) {
      if (!each.gradient.empty()) log_.refused(each.key);
      refuse(each, expert_refusal::unknown_expert);
    }
    at = experts_.erase(at);
    changed = true;
  }
  if (changed) publish();
}

// -- claims ---------------------------------------------------------------------------------------

std::optional<expert_holder> expert_server::claim_of(const expert_id& which,
                                                     const expert_dictionary& records) {
  return records.holder(which.place.back(), hosts_, here().utc_ns(), now());
}

expert_server::proven_holder expert_server::holder_of(const expert_id& which,
                                                      expert_dictionary& records) {
  while (auto claim = claim_of(which, records)) {
    switch (claims_.of(which, claim->peer, now())) {
    case holder_claims::state::held:
      return {std::move(claim), false};
    case holder_claims::state::refuted:
      records.drop(claim->peer, which.place.back());
      break;
    case holder_claims::state::unknown:
      check_claim(which, *claim);
      [[fallthrough]];
    case holder_claims::state::asked:
      return {std::nullopt, true};
    }
  }
  return {};
}

void expert_server::check_claim(const expert_id& which, const expert_holder& claim) {
  const auto width = options_.block->width();
  auto row =
      pack_activations(kernels::codec::none, std::vector<float>(width), width, options_.sized);
  SHOAL_CHECK(row, "a row of zeros can be packed");
  expert_pass m;
  m.reply_to = address();
  m.request = ++last_token_;
  m.layer = which.layer;
  m.place = which.place;
  m.rows = 1;
  m.x = std::move(*row);
  claims_.ask(which, claim.peer, m.request, now());
  set_timer(options_.offer_time, claim_late, m.request);
  send(claim.address, std::move(m));
}

void expert_server::receive(const expert_answer& m) {
  const auto width = options_.block->width();
  const auto row = unpack_activations(kernels::codec::none, m.values, 1, width, options_.sized);
  claim_ended(claims_.answered(sender_peer(), m.request, row.ok(), now()));
}

void expert_server::claim_ended(const std::optional<expert_id>& which) {
  if (!which) return;
  const auto prefix = parent_of(*which);
  const auto key = prefix_key(options_.model, prefix.layer, prefix.place);
  const auto& hand = options_.hand;
  if (experts_.contains(*which))
    ask(key, question::own_prefix, prefix);
  else if (std::find(hand.begin(), hand.end(), *which) != hand.end())
    ask(key, question::hand, prefix);
  if (copies_.contains(*which)) ask_for_holders(prefix);
}

// -- copies ---------------------------------------------------------------------------------------

std::vector<peer_id> expert_server::receivers_of(const expert_id& which) const {
  std::vector<std::pair<std::uint64_t, peer_id>> ranked;
  const auto name = to_text(which);
  for (const auto& [peer, server] : servers_)
    if (server.expires_utc_ns > here().utc_ns())
      ranked.emplace_back(hasher().add(name).add(peer).finish().prefix(), peer);
  std::sort(ranked.rbegin(), ranked.rend());
  std::vector<peer_id> out;
  for (const auto& each : ranked) {
    if (out.size() == options_.copies) break;
    out.push_back(each.second);
  }
  return out;
}

void expert_server::send_copies() {
  experts_copied seen;
  for (auto& [which, expert] : experts_) {
    const auto receivers = receivers_of(which);
    std::erase_if(expert.copied, [&](const auto& each) {
      return std::find(receivers.begin(), receivers.end(), each.first) == receivers.end();
    });
    payload packed;
    for (const auto peer : receivers) {
      const auto before = expert.copied.find(peer);
      if (before != expert.copied.end() && before->second == expert.state->steps) continue;
      if (packed.empty()) packed = expert.state->pack(options_.copy_bytes);
      expert.copied[peer] = expert.state->steps;
      send(servers_.at(peer).address,
           expert_copy{address(), which.layer, which.place, expert.state->steps, packed});
    }
    if (!packed.empty()) seen.copies.push_back({which, expert.state->steps});
  }
  if (!seen.copies.empty()) here().observe(seen);
  here().probe(expert_probes::copies_sent);
}

void expert_server::receive(const expert_wanted& m) {
  if (!is_senders(m.reply_to)) return sender_misbehaves("a copy that goes to another host");
  const auto held = experts_.find({m.layer, m.place});
  if (held == experts_.end())
    return send(m.reply_to, expert_refused{m.request, static_cast<std::uint8_t>(
                                                          expert_refusal::unknown_expert)});
  const auto& state = held->second.state;
  send(m.reply_to,
       expert_copy{address(), m.layer, m.place, state->steps, state->pack(options_.copy_bytes)});
}

void expert_server::receive(const expert_copy& m) {
  if (!is_senders(m.owner)) return sender_misbehaves("a copy of another host's expert");
  const expert_id which{m.layer, m.place};
  if (!is_on_grid(m.layer, m.place))
    return sender_misbehaves("a copy of an expert beyond the grid");
  if (experts_.contains(which)) return; // the next renewal decides who holds it
  const auto kept = copies_.find(which);
  const auto sender = sender_peer();
  if (kept != copies_.end() && kept->second.owner != sender &&
      kept->second.owner_address != nullptr && m.steps <= kept->second.state->steps)
    return;
  if (kept == copies_.end() && copies_.size() >= options_.most_copies) return;
  auto state = expert_state::unpack(m.values, options_.block->parameter_count(), m.steps,
                                    options_.copy_bytes, options_.optimizer);
  if (!state) return sender_misbehaves(state.error());
  if (!may_be(sender, size_of_values(state->parameters)))
    return misbehaviour(sender, "a copy of an expert is far larger than those of other hosts");
  auto& copy = copies_[which];
  if (copy.revival != 0) revivals_.erase(copy.revival);
  copy.state = std::make_shared<const expert_state>(std::move(*state));
  copy.revival = 0;
  set_owner(which, copy, sender, m.owner);
}

void expert_server::set_owner(const expert_id& which, kept_copy& copy, peer_id peer,
                              const caf::actor& owner) {
  const auto before = std::exchange(copy.owner_address, caf::actor_cast<caf::actor_addr>(owner));
  copy.owner = peer;
  hosts_.forget_offers(which);
  watch(owner);
  // An owner may send its copies from ever new actors.
  if (before && before != copy.owner_address &&
      std::none_of(copies_.begin(), copies_.end(),
                   [&](const auto& each) { return each.second.owner_address == before; }) &&
      watched_.erase(before) > 0)
    demonitor(before);
}

bool expert_server::may_be(peer_id owner, double size) {
  // The experts of this host are the ones that it can trust.
  double own = 0;
  for (const auto& [which, expert] : experts_)
    own = std::max(own, size_of_values(expert.state->parameters));
  if (options_.most_growth > 0 && own > 0 && size > options_.most_growth * own) return false;
  return copy_sizes_.accepts(owner, size);
}

void expert_server::watch(const caf::actor& owner) {
  if (watched_.insert(caf::actor_cast<caf::actor_addr>(owner)).second) monitor(owner);
}

// -- revival --------------------------------------------------------------------------------------

void expert_server::on_down(const caf::actor_addr& whom) {
  watched_.erase(whom);
  std::erase_if(servers_, [&](const auto& each) {
    return caf::actor_cast<caf::actor_addr>(each.second.address) == whom;
  });
  peer_id dead = 0;
  for (auto& [which, copy] : copies_)
    if (copy.owner_address == whom) {
      copy.owner_address = nullptr;
      dead = copy.owner;
    }
  if (dead == 0) return;
  hosts_.died(dead, here().utc_ns());
  check_owners(dead);
}

void expert_server::check_owners(peer_id of) {
  std::set<expert_id> prefixes;
  for (const auto& [which, copy] : copies_)
    if (!copy.owner_address && (of == 0 || copy.owner == of)) prefixes.insert(parent_of(which));
  for (const auto& each : prefixes) ask_for_holders(each);
}

// -- the course of the swarm ----------------------------------------------------------------------

void expert_server::look_for_hand() {
  // The trainers' records tell whether the swarm is new. A host that has not joined the DHT yet
  // sees none, and an expert that it began then would be untrained.
  if (!met_trainers_) set_timer(options_.offer_time / 8, look_again);
  ask(expert_trainers_key(options_.model), question::trainers, {});
}

void expert_server::read_trainers(const found& m) {
  bool at_work = false;
  for (const auto& each : m.records) {
    const auto record = expert_trainer_record::unpack(each->value);
    if (!record || !each->address) continue;
    met_trainers_ = true;
    learnt_.read(here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address)), *record);
    at_work = at_work || !record->done;
  }
  if (!met_trainers_) return;
  learnt_.read_all();
  std::set<expert_id> prefixes;
  for (const auto& each : options_.hand)
    if (!experts_.contains(each)) prefixes.insert(parent_of(each));
  for (const auto& each : prefixes)
    ask(prefix_key(options_.model, each.layer, each.place), question::hand, each);
  auto epoch = learnt_.total() / options_.epoch_of;
  if (options_.epochs > 0 && epoch >= options_.epochs) {
    // Trainers that put the whole model together still need the experts.
    if (!over_since_) over_since_ = now();
    const bool over = !at_work || now() - *over_since_ >= options_.forget_after;
    epoch = options_.epochs - (over ? 0 : 1);
  }
  if (epoch <= epoch_ && epoch_ > 0) return;
  epoch_ = epoch;
  here().observe(phase_changed{peer_phase::computing, epoch_, {}});
  here().observe(experts_followed{epoch_, experts_.size(), copies_.size()});
}

void expert_server::take_hand(const expert_id& prefix, const found& m) {
  if (draining_) return;
  expert_dictionary records(m, here());
  bool changed = false;
  for (const auto& each : options_.hand) {
    if (parent_of(each) != prefix || experts_.contains(each)) continue;
    const auto [holder, is_open] = holder_of(each, records);
    if (holder) missing_.erase(each);
    if (holder || is_open) continue;
    const auto since = missing_.try_emplace(each, now()).first->second;
    const bool is_new = learnt_.total() < new_epochs * options_.epoch_of;
    if (!is_new && now() - since < options_.forget_after) continue;
    missing_.erase(each);
    hold(each, fresh(each), false);
    changed = true;
  }
  if (changed) publish();
}

// -- revival --------------------------------------------------------------------------------------

void expert_server::ask_for_holders(const expert_id& prefix) {
  ask(prefix_key(options_.model, prefix.layer, prefix.place), question::holders, prefix);
}

void expert_server::offer(const expert_id& which, std::uint64_t attempt) {
  announce(revival_key(options_.model, which),
           pack_coordinates({{0, copies_.at(which).state->steps}}), 10 * options_.offer_time);
  set_timer(options_.offer_time, offer_over, attempt);
  // Another host's offer may win, and that host may die before it announces the expert.
  set_timer(8 * options_.offer_time, check_again, attempt);
}

void expert_server::decide(const expert_id& which, const found& m) {
  const auto copy = copies_.find(which);
  if (copy == copies_.end() || copy->second.revival == 0) return;
  const auto mine = copy->second.state->steps;
  for (const auto& each : m.records) {
    const auto offered = unpack_coordinates(each->value);
    if (!offered || offered->size() != 1 || !each->address ||
        each->expires_utc_ns <= here().utc_ns())
      continue;
    const auto peer = here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address));
    const auto steps = offered->front().steps;
    if (peer == 0 || peer == here().id() || hosts_.has_won(peer, which)) continue;
    if (steps > mine || (steps == mine && peer < here().id())) {
      hosts_.won(peer, which); // if it does not hold the expert then, it wins no more
      return;
    }
  }
  revivals_.erase(copy->second.revival);
  here().probe(expert_probes::revived);
  hold(which, copy->second.state, true);
  publish();
  send_copies();
}

} // namespace shoal::actors
