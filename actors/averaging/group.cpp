#include "actors/averaging/group.hpp"

#include "actors/averaging/messages.hpp"
#include "actors/averaging/observations.hpp"
#include "actors/dht/host_record.hpp"
#include "actors/dht/messages.hpp"
#include "actors/probes.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace shoal::actors {

group_actor::group_actor(caf::actor_config& config, host& on, caf::actor owner,
                         averaging_config options, round_request request)
    : protocol_actor(config, on), owner_(std::move(owner)), options_(options),
      request_(std::move(request)) {}

caf::behavior group_actor::make_behavior() {
  key_ = matchmaking::key(request_.epoch, request_.state);
  member_info self{here().id(),
                   address(),
                   request_.weight,
                   request_.rate_up,
                   request_.rate_down,
                   static_cast<std::uint8_t>(request_.reached),
                   request_.takes ? std::uint8_t{1} : std::uint8_t{0},
                   request_.samples,
                   here().key(),
                   request_.state_root,
                   {}};
  const auto leader_wait =
      request_.max_wait > duration{} ? request_.max_wait : options_.matchmaking_time;
  const auto wait = leader_wait + request_.awaited;
  last_deadline_ = wait >= options_.matchmaking_time;
  const auto deadline_utc = here().utc_ns() + leader_wait.count();
  matchmaking_.emplace(options_, request_, self, deadline_utc, static_cast<round_io&>(*this),
                       matchmaking::events{[this](const group_begun& group) { begin(group); },
                                           [this](reason why) { matchmaking_failed(why); },
                                           [this] { set_timer(request_.grace, grace_over); }});
  const matchmaking::bid mine{deadline_utc, request_.reached != reached_by::nobody};
  send(request_.dht,
       store{key_, host_record(here(), address(), mine.pack(),
                               4 * options_.matchmaking_time + options_.round_timeout)});
  matchmaking_->start();
  look_up();
  set_timer(options_.poll_interval, poll);
  set_timer(wait, deadline);
  if (wait < options_.matchmaking_time) set_timer(options_.matchmaking_time, last_deadline);
  set_timer(3 * options_.matchmaking_time, give_up);
  here().probe(probes::matchmaking_begun);
  caf::message_handler handlers{
      [this](reduced_chunk& m) { for_round(m); },
      [this](part_chunk& m) { for_round(m); },
      [this](member_ready& m) { for_round(m); },
      [this](member_finished& m) { for_round(m); },
      [this](tick& m) { on_timer(m); },
      [this](found& m) { found_peers(m); },
      [this](expected_now& m) { matchmaking_->expect(m.peers, m.known_samples); },
      [this](join_request& m) { matchmaking_->on(m, current_sender()); },
      [this](join_accepted& m) { matchmaking_->on(m, current_sender()); },
      [this](join_rejected& m) { matchmaking_->on(m, current_sender()); },
      [this](join_withdrawn& m) { matchmaking_->on(m, current_sender()); },
      [this](group_begun& m) { matchmaking_->on(m, current_sender()); },
      [this](member_declined& m) { for_round(m); },
      [this](part_query& m) { for_round(m); },
      [this](part_claim& m) { for_round(m); },
      [this](chunk_received& m) { of_round(m); },
      [this](part_answer& m) { of_round(m); },
      [this](part_wanted& m) { of_round(m); },
      [this](part_versions& m) { of_round(m); },
      [this](certificate_wanted& m) { of_round(m); },
      [this](certificate_given& m) { of_round(m); },
  };
  return options_.guard ? handlers.or_else(guard_handlers()) : handlers;
}

void group_actor::on_exit() {
  // Watched peers live on, and would keep each dead watcher in memory.
  for (const auto& whom : std::exchange(watched_, {})) demonitor(whom);
  matchmaking_.reset();
  rounds_.clear();
  guard_.reset();
  // The kept senders may refer to data of this actor.
  early_.clear();
  begun_.reset();
  first_mean_ = {};
  owner_ = nullptr;
  request_ = {};
  protocol_actor::on_exit();
}

/// Passes a message to the round that it belongs to. A message of another group is dropped: its
/// sender does not know yet that this peer declined that group.
template <class Message>
bool group_actor::hand_over(Message& message, const caf::strong_actor_ptr& sender) {
  for (auto& one : rounds_)
    if (one.group().group == message.group) {
      one.on(message, sender);
      return true;
    }
  return false;
}

template <class Message>
void group_actor::for_round(Message& message) {
  if (!rounds_.empty()) {
    const bool taken = hand_over(message, current_sender());
    // The decline is for the group, and so for both rounds.
    if constexpr (std::is_same_v<Message, member_declined>) {
      if (taken && rounds_.size() == 2 && message.group == begun_->group) {
        message.group = rounds_.back().group().group;
        hand_over(message, current_sender());
      }
    }
    if (taken || reported_ || !of_second(message.group)) return leave_if_idle();
  }
  if (!may_keep(message)) return;
  early_.emplace_back(current_sender(), std::move(message));
}

/// A fast member's first chunks can overtake the leader's group_begun, or the end of the first of
/// two rounds. A correct member has at most a window of chunks and a few small messages under way.
/// So nobody can fill the memory, or the place of another member's messages.
bool group_actor::may_keep(const caf::strong_actor_ptr& sender, std::uint64_t bytes) {
  const auto who = here().peer_of(sender);
  const auto known = is_member(who) || matchmaking_->knows(sender);
  const auto rounds = has_second() ? 2u : 1u;
  const auto vector = request_.values.size() + 4 * request_.second.value_count;
  const auto piece = piece_bytes(options_, vector / 4);
  // A codec may write twice the bytes of the values.
  if (bytes > 2 * piece + 1024)
    return misbehaviour(who, "chunk that is too long, before the group began"), false;
  const auto window =
      // A codec may add a table of a kibibyte to each chunk.
      std::min<std::uint64_t>(2 * vector + 1024 * (options_.window_chunks + 4),
                              options_.window_chunks * (2 * piece + 1024));
  // One stranger may use up what all of them have, so the next one may be innocent.
  auto& all = strangers_;
  if (!known && ++all.messages > most_of_strangers)
    return misbehaviour(0, "too many messages of strangers before the group began"), false;
  if (!known && (all.bytes += bytes) > 2 * vector + 1024 * most_of_strangers)
    return misbehaviour(0, "too many bytes of strangers before the group began"), false;
  auto& one = early_from_[who];
  const auto of_guard = options_.guard ? 4u : 0u;
  if (++one.messages > rounds * (options_.window_chunks + 4) + of_guard)
    return misbehaviour(who, "too many messages before the group began"), false;
  if ((one.bytes += bytes) > rounds * window)
    return misbehaviour(who, "too many bytes before the group began"), false;
  return true;
}

bool group_actor::is_member(peer_id peer) const {
  return begun_ && std::any_of(begun_->members.begin(), begun_->members.end(),
                               [&](const member_info& one) { return one.peer == peer; });
}

/// For messages that no member sends before the round began.
template <class Message>
void group_actor::of_round(Message& message) {
  hand_over(message, current_sender());
  leave_if_idle();
}

void group_actor::look_up() {
  send(request_.dht, lookup{key_, address(), 0});
}

/// Two peers that begin at the same moment miss each other's records. A leader therefore looks
/// again soon after its first look.
void group_actor::found_peers(const found& what) {
  matchmaking_->found_peers(what.records);
  if (!std::exchange(looked_up_, true)) set_timer(options_.poll_interval / 4, second_look);
}

void group_actor::on_timer(const tick& what) {
  switch (what.kind) {
  case second_look:
    if (matchmaking_->leading()) look_up();
    return;
  case poll:
    if (matchmaking_->over()) return;
    look_up();
    set_timer(options_.poll_interval, poll);
    return;
  case deadline:
    return matchmaking_->on_deadline(last_deadline_);
  case last_deadline:
    return matchmaking_->on_deadline(true);
  case give_up:
    return matchmaking_->on_give_up();
  case grace_over:
    return matchmaking_->on_grace_over();
  case cancel:
    if (!reported_ && rounds_.empty()) matchmaking_failed(reason::cancelled);
    return;
  case look_at_senders:
    if (finished()) return;
    rounds_.back().check_senders();
    set_timer(options_.sender_timeout / 4, look_at_senders);
    return leave_if_idle();
  case round_over:
    if (what.token < rounds_.size()) rounds_[what.token].on_round_timeout();
    return leave_if_idle();
  case leave:
    return end();
  case guard_tick:
    if (guard_) guard_->tick();
    return leave_if_idle();
  default:
    return;
  }
}

void group_actor::begin(const group_begun& group) {
  send(request_.dht, withdraw{key_, host_subkey(here())});
  begun_ = group;
  auto first = group;
  if (has_second()) first.boundaries.resize(group.members.size() + 1);
  begin_round(request_, std::move(first));
}

void group_actor::begin_round(round_request request, group_begun group) {
  const bool first_of_two = has_second() && rounds_.empty();
  const auto size = request.values.size();
  options_.conduct->contribute(request.values, request);
  SHOAL_CHECK(request.values.size() == size, "a conduct must not change the number of values");
  auto& round = rounds_.emplace_back(options_, std::move(request), std::move(group), here().id(),
                                     static_cast<round_io&>(*this),
                                     [this](round_result result) { conclude(std::move(result)); });
  contributed what{round.group().group,  round.group().epoch,
                   round.self(),         static_cast<std::uint32_t>(round.group().members.size()),
                   request_.weight,      request_.samples,
                   round.contribution(), request_.takes,
                   first_of_two};
  if (first_of_two) what.samples.clear();
  here().observe(what);
  if (options_.guard) begin_guard(round);
  if (rounds_.size() == 1) here().probe(probes::group_begun);
  set_timer(options_.round_timeout, round_over, rounds_.size() - 1);
  if (rounds_.size() == 1) set_timer(options_.sender_timeout / 4, look_at_senders);
  round.start();
  early_from_.clear();
  strangers_ = {};
  for (auto& [sender, message] : std::exchange(early_, {}))
    std::visit(
        [&, who = sender](auto& m) {
          if constexpr (is_for_guard<std::remove_cvref_t<decltype(m)>>) {
            if (guard_ && guard_->group() == m.group) guard_->on(m, who);
          } else if (!hand_over(m, who) && of_second(m.group) && !reported_) {
            early_.emplace_back(who, std::move(m));
          }
        },
        message);
  leave_if_idle();
}

void group_actor::begin_second() {
  const auto size = begun_->members.size();
  auto group = *begun_;
  group.group = second_group(begun_->group);
  group.boundaries.assign(begun_->boundaries.begin() + static_cast<std::ptrdiff_t>(size + 1),
                          begun_->boundaries.end());
  auto request = request_;
  request.values = request_.second.values(first_mean_);
  request.codecs = request_.second.codecs;
  request.first_version = first_version_;
  SHOAL_CHECK(request.values.size() == 4 * request_.second.value_count,
              "a contribution of the second round's length");
  const auto lost = rounds_.front().lost_members();
  begin_round(std::move(request), std::move(group));
  for (const auto& [member, why] : lost) rounds_.back().leave_out_member(member, why);
}

void group_actor::conclude(round_result result) {
  here().observe(round_ended{result.group, result.epoch, result.member,
                             static_cast<std::uint32_t>(result.members.size()), result.outcome,
                             result.reason, result.parts, result.values,
                             static_cast<std::uint64_t>(result.started.count())});
  if (guard_) guard_->ended(result, rounds_.back().reducers());
  if (has_second() && rounds_.size() == 1) {
    if (result.succeeded()) {
      first_mean_ = result.values;
      first_version_ = result.certificate->version;
      return begin_second();
    }
    decline_second();
  }
  report(std::move(result));
}

/// The first of two rounds has failed for this member: the others must not wait for it in the
/// second.
void group_actor::decline_second() {
  const auto self = rounds_.front().self();
  const auto& members = begun_->members;
  const auto second = second_group(begun_->group);
  const auto by = here().sign(decline_statement(second));
  for (std::size_t m = 0; m < members.size(); ++m)
    if (m != self && (members[m].reached != 0 || members[self].reached != 0))
      send(members[m].address, member_declined{second, self, by});
}

void group_actor::report(round_result result) {
  matchmaking_->set_late_answer(result.succeeded() ? reason::group_closed : reason::cancelled);
  reported_ = true;
  result.gathered = matchmaking_->gathered();
  if (rounds_.size() == 2 && result.succeeded() && request_.takes) {
    if (result.values.is_size_only() || first_mean_.is_size_only()) {
      result.values = payload::size_only(first_mean_.size() + result.values.size());
    } else {
      std::vector<float> both(first_mean_.floats().begin(), first_mean_.floats().end());
      both.insert(both.end(), result.values.floats().begin(), result.values.floats().end());
      result.values = payload{std::move(both)};
    }
  }
  send(owner_, round_report{std::make_shared<const round_result>(std::move(result))});
  // Other members may still need this member's data, for a limited time.
  const auto guarding =
      guard_ ? guard_options::longest_stay(options_.guard->duty_time) : duration{};
  set_timer(options_.round_timeout + guarding, leave);
}

void group_actor::matchmaking_failed(reason why) {
  send(request_.dht, withdraw{key_, host_subkey(here())});
  round_result result;
  result.epoch = request_.epoch;
  result.reason = why;
  result.started = now();
  result.bad_leader = matchmaking_->bad_leader();
  here().observe(round_ended{{},
                             request_.epoch,
                             0,
                             0,
                             outcome::failed,
                             why,
                             {},
                             {},
                             static_cast<std::uint64_t>(now().count())});
  reported_ = true;
  send(owner_, round_report{std::make_shared<const round_result>(std::move(result))});
  quit();
}

void group_actor::leave_if_idle() {
  if (reported_ && !rounds_.empty() && guard_is_idle() &&
      std::all_of(rounds_.begin(), rounds_.end(), [](const butterfly& one) { return one.idle(); }))
    end();
}

void group_actor::end() {
  if (!options_.conduct->stays_in_group()) quit();
}

void group_actor::on_down(const caf::actor_addr& whom) {
  std::erase(watched_, whom);
  matchmaking_->on_down(whom);
  for (std::size_t i = 0; i < rounds_.size(); ++i)
    // The end of the first round may begin the second.
    rounds_[i].on_down(whom);
  if (guard_) guard_->on_down(whom);
  leave_if_idle();
}

void group_actor::send_to(const caf::actor& to, caf::message content) {
  send(to, std::move(content));
}
void group_actor::watch(const caf::actor& whom) {
  auto address = caf::actor_cast<caf::actor_addr>(whom);
  if (std::find(watched_.begin(), watched_.end(), address) != watched_.end()) return;
  watched_.push_back(address);
  monitor(whom);
}
void group_actor::probe(std::string_view point) {
  here().probe(point);
}
bool group_actor::failpoint(std::string_view branch) {
  return here().failpoint(branch);
}
duration group_actor::time() const {
  return now();
}
std::int64_t group_actor::utc_ns() const {
  return here().utc_ns();
}
peer_id group_actor::peer_of(const caf::strong_actor_ptr& address) const {
  return here().peer_of(address);
}
member_id group_actor::member_of(const caf::strong_actor_ptr& address) const {
  return here().member_of(address);
}
bool group_actor::is_banned(const member_id& who) const {
  return here().is_banned(who);
}
signature group_actor::sign(const digest& statement) const {
  return here().sign(statement);
}
bool group_actor::is_signed_by(const key256& key, const digest& statement,
                               const signature& by) const {
  return here().is_signed_by(key, statement, by);
}
void group_actor::convict(peer_id culprit, const contradiction& proof) {
  here().observe(contradicted{culprit, proof});
  // The host's DHT node bans the culprit, and tells the others.
  if (request_.dht) send(request_.dht, evidence_of(proof));
  misbehaviour(culprit, "two signed statements that contradict each other");
}
void group_actor::suspect(peer_id culprit, std::string why) {
  misbehaviour(culprit, std::move(why));
}

} // namespace shoal::actors
