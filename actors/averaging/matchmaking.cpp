#include "actors/averaging/matchmaking.hpp"

#include "actors/averaging/roster_plan.hpp"
#include "actors/failpoints.hpp"
#include "actors/probes.hpp"
#include "actors/trust/identity.hpp"
#include "actors/trust/probation.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

namespace shoal::actors {

namespace {

/// A clock that is so wrong as to be no clock.
constexpr std::int64_t far_ns = std::int64_t{10} * 60 * 1'000'000'000;
/// Leaders that may refuse this peer in one attempt.
constexpr std::uint32_t most_refusals = 3;

bool is(const caf::actor& address, const caf::strong_actor_ptr& sender) {
  return sender && address && caf::actor_cast<caf::strong_actor_ptr>(address) == sender;
}

/// False for values that no correct member sends. A member that takes no result contributes
/// nothing. A `reached` above `all` would win all parts.
bool possible(const member_info& who) {
  return (who.takes != 0 || who.weight == 0) &&
         who.reached <= static_cast<std::uint8_t>(reached_by::all);
}

std::optional<peer_id> parse_id(const std::string& text) {
  peer_id out = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

} // namespace

matchmaking::matchmaking(const averaging_config& config, const round_request& request,
                         member_info self, std::int64_t deadline, round_io& io, events on)
    : config_(config), request_(request), self_(std::move(self)), io_(io), on_(std::move(on)),
      deadline_(deadline) {
  self_.by = io_.sign(member_statement(as_roster(), self_));
}

/// The fields of a group that its members sign.
group_begun matchmaking::as_roster() const {
  group_begun out;
  out.epoch = request_.epoch;
  out.state = request_.state;
  out.value_count = value_count();
  out.second_values = request_.second.value_count;
  out.codec = request_.codecs.number();
  return out;
}

signature_check matchmaking::checker() const {
  return [this](const key256& key, const digest& what, const signature& by) {
    return io_.is_signed_by(key, what, by);
  };
}

bool matchmaking::is_of(peer_id peer, const caf::actor& address) const {
  return address && io_.peer_of(caf::actor_cast<caf::strong_actor_ptr>(address)) == peer;
}

bool matchmaking::is_bad(const caf::actor& address) const {
  return !request_.bad_leaders.empty() && request_.bad_leaders.contains(io_.member_of(
                                              caf::actor_cast<caf::strong_actor_ptr>(address)));
}

bool matchmaking::sits_out(const caf::actor& address) const {
  return !request_.sit_out.empty() &&
         request_.sit_out.contains(io_.member_of(caf::actor_cast<caf::strong_actor_ptr>(address)));
}

bool matchmaking::is_new(const member_info& who) const {
  return who.weight > 0 && request_.on_probation && request_.on_probation->has(member_of(who.key));
}

bool matchmaking::near_now(std::int64_t deadline) const {
  const auto now = io_.utc_ns();
  const auto most = 4 * config_.matchmaking_time.count() + far_ns;
  return deadline >= now - most && deadline <= now + most;
}

bool matchmaking::knows(const caf::strong_actor_ptr& sender) const {
  const auto peer = io_.peer_of(sender);
  return peer != 0 && (ready_.contains(peer) || joined_.contains(peer) || expected_.contains(peer));
}

std::string matchmaking::key(std::uint64_t epoch, const state_id& state) {
  return fmt::format("round.{}.{}", epoch, state.hex());
}

void matchmaking::start() {
  started_ = io_.time();
  expect(request_.expected, request_.known_samples);
}

void matchmaking::expect(const std::vector<expected_peer>& peers, std::uint64_t known_samples) {
  if (over_) return;
  known_samples_ = known_samples;
  auto before = std::exchange(expected_, {});
  for (const auto& peer : peers) {
    if (peer.peer == self_.peer || !is_of(peer.peer, peer.address) || is_gone(peer.address) ||
        sits_out(peer.address) || is_bad(peer.address))
      continue;
    expected_[peer.peer] = peer.address;
    if (auto known = before.find(peer.peer); known == before.end() || known->second != peer.address)
      io_.watch(peer.address);
  }
  close_if_complete();
}

bool matchmaking::is_gone(const caf::actor& address) const {
  return std::find(gone_.begin(), gone_.end(), caf::actor_cast<caf::actor_addr>(address)) !=
         gone_.end();
}

void matchmaking::found_peers(const std::vector<shared<record>>& records) {
  if (over_) return;
  looked_up_ = true;
  for (const auto& entry : records) {
    auto id = parse_id(entry->subkey);
    // The owner of a record may write any sub-key. The address proves whose it is.
    if (id && *id != self_.peer && is_of(*id, entry->address))
      learn(*id, entry->address, bid::unpack(entry->value));
  }
  choose_leader();
  close_if_complete();
}

bool matchmaking::may_lead() const {
  return self_.reached > 0 || (ready_.empty() && expected_.empty());
}

void matchmaking::learn(peer_id peer, const caf::actor& address, bid what) {
  // Messages of a banned member do not arrive, so nobody waits for it or follows it.
  if (is_gone(address) ||
      io_.is_banned(io_.member_of(caf::actor_cast<caf::strong_actor_ptr>(address))))
    return;
  if (!ready_.contains(peer) && ready_.size() >= std::size_t{4} * config_.group_size) {
    if (!std::exchange(full_said_, true))
      io_.suspect(0, "more peers want to join than four groups can take");
    return;
  }
  auto& known = ready_[peer];
  what.leads = what.leads && near_now(what.deadline);
  known.what = what;
  if (known.address == address) return;
  known.refused = false;
  // The record is new, or the peer tries again with a new group actor.
  known.address = address;
  // The old group actor will not answer this peer's request.
  if (leader_ == peer) {
    leader_.reset();
    accepted_ = false;
  }
  io_.watch(address);
}

void matchmaking::choose_leader() {
  if (over_ || !looked_up_) return;
  // A peer that others cannot reach follows nobody until some peer can lead.
  std::optional<rank> first;
  if (self_.reached > 0) first = own_rank();
  for (const auto& [peer, one] : ready_)
    if (const auto theirs = rank_of(peer, one);
        one.what.leads && !one.refused && (!first || theirs < *first))
      first = theirs;
  const auto leader = first ? std::get<peer_id>(*first) : self_.peer;
  if (leader != self_.peer) {
    if (leader_ != leader) follow(leader);
  } else if (leader_) {
    leader_.reset();
    accepted_ = false;
  }
}

void matchmaking::follow(peer_id leader) {
  const auto& to = ready_.at(leader);
  // The old leader may already count on this peer, with its answer under way.
  if (leader_)
    if (auto old = ready_.find(*leader_); old != ready_.end())
      io_.send_to(old->second.address, caf::make_message(join_withdrawn{self_.peer}));
  for (const auto& [peer, info] : joined_)
    io_.send_to(info.address,
                caf::make_message(join_rejected{0, leader, to.what.deadline, to.address}));
  joined_.clear();
  leader_ = leader;
  accepted_ = false;
  io_.send_to(to.address,
              caf::make_message(join_request{request_.epoch, request_.state, value_count(),
                                             request_.codecs.number(), deadline_, self_}));
}

void matchmaking::on(const join_request& message, const caf::strong_actor_ptr& sender) {
  const auto& who = message.member;
  // An answer goes only to the sender's host, and its host decides who it is.
  const auto from = io_.peer_of(sender);
  const auto from_member = io_.member_of(sender);
  if (from == 0 || who.peer != from || !is_of(from, who.address) ||
      member_of(who.key) != from_member)
    return io_.suspect(from, "join request in another member's name");
  auto reject = [&](reason why, peer_id suggested = 0, std::int64_t deadline = 0,
                    const caf::actor& address = {}) {
    io_.send_to(who.address, caf::make_message(join_rejected{static_cast<std::uint8_t>(why),
                                                             suggested, deadline, address}));
  };
  if (!possible(who) || (config_.most_weight > 0 && who.weight > config_.most_weight)) {
    io_.suspect(who.peer, "join request with impossible member data");
    return reject(reason::bad_message);
  }
  if (over_) return reject(late_answer_);
  if (message.epoch != request_.epoch || message.state != request_.state)
    return reject(reason::out_of_sync);
  if (message.value_count != value_count() || message.codec != request_.codecs.number() ||
      who.peer == self_.peer) {
    io_.suspect(who.peer, "join request for another vector or codec, or in this peer's name");
    return reject(reason::bad_message);
  }
  if (!io_.is_signed_by(who.key, member_statement(as_roster(), who), who.by)) {
    io_.suspect(who.peer, "join request without the member's signature");
    return reject(reason::bad_message);
  }
  if (is_new(who)) {
    io_.suspect(who.peer, "join request of a newcomer whose contribution does not count yet");
    return reject(reason::bad_message);
  }
  if (request_.sit_out.contains(from_member) || who.key == self_.key)
    return reject(reason::group_closed);
  if (leader_)
    return reject(reason::none, *leader_, ready_.at(*leader_).what.deadline,
                  ready_.at(*leader_).address);
  if (!may_lead() && joined_.empty() && who.reached == 0) return reject(reason::cancelled);
  if (who.reached > 0 && near_now(message.deadline) &&
      (rank{is_bad(who.address), message.deadline, who.peer} < own_rank() || self_.reached == 0)) {
    // The requester should lead. It will find that out, as this peer does once the DHT names it.
    learn(who.peer, who.address, {message.deadline, true});
    choose_leader();
    return reject(reason::none, who.peer, message.deadline, who.address);
  }
  forget_former(who);
  if (!joined_.contains(who.peer) &&
      (joined_.size() + 1 >= config_.group_size || io_.failpoint(failpoint::full)))
    return reject(reason::group_closed);
  learn(who.peer, who.address, {message.deadline, who.reached > 0});
  if (!ready_.contains(who.peer)) return reject(reason::group_closed);
  joined_.insert_or_assign(who.peer, who);
  gathered_ = io_.time() - started_;
  io_.send_to(who.address, caf::make_message(join_accepted{request_.state}));
  close_if_complete();
}

void matchmaking::on(const join_accepted&, const caf::strong_actor_ptr& sender) {
  if (over_ || !leader_ || accepted_ || !is(ready_.at(*leader_).address, sender)) return;
  accepted_ = true;
  io_.probe(probes::matchmaking_joined);
}

void matchmaking::on(const join_rejected& message, const caf::strong_actor_ptr& sender) {
  if (over_ || !leader_ || !is(ready_.at(*leader_).address, sender)) return;
  auto why = static_cast<reason>(std::min<std::size_t>(message.why, reason_names.size() - 1));
  // The address belongs to an earlier attempt. Its owner will return under a new one.
  if (why == reason::cancelled) {
    forget(caf::actor_cast<caf::actor_addr>(sender), false);
    choose_leader();
    return close_if_complete();
  }
  auto& refuser = ready_.at(*leader_);
  // One leader's word does not say that this peer's state is not the branch's.
  if (why == reason::out_of_sync) {
    refuser.refused = true;
    const bool other = std::any_of(ready_.begin(), ready_.end(), [](const auto& one) {
      return one.second.what.leads && !one.second.refused;
    });
    if (other && ++refusals_ <= most_refusals) {
      leader_.reset();
      accepted_ = false;
      choose_leader();
      return close_if_complete();
    }
  }
  if (why != reason::none) return fail(why);
  const auto refused_by = rank_of(*leader_, refuser);
  leader_.reset();
  accepted_ = false;
  // Only a leader that precedes the refuser, and did not refuse this peer, is accepted: there are
  // no circles. Otherwise the refuser does not count as a leader until the next look-up.
  const auto known = ready_.find(message.suggested_peer);
  const bool better =
      (known == ready_.end() || !known->second.refused) && message.suggested_peer != self_.peer &&
      is_of(message.suggested_peer, message.suggested) && near_now(message.suggested_deadline) &&
      rank{is_bad(message.suggested), message.suggested_deadline, message.suggested_peer} <
          refused_by;
  if (better) learn(message.suggested_peer, message.suggested, {message.suggested_deadline, true});
  // A banned or ended leader is not taken over either.
  const auto taken = ready_.find(message.suggested_peer);
  if (!better || taken == ready_.end() || taken->second.address != message.suggested)
    refuser.what.leads = false;
  choose_leader();
}

void matchmaking::on(const join_withdrawn& message, const caf::strong_actor_ptr& sender) {
  auto found = joined_.find(message.peer);
  if (over_ || found == joined_.end() || !is(found->second.address, sender)) return;
  joined_.erase(found);
}

std::optional<std::string> matchmaking::flaw_of(const group_begun& message) const {
  const auto& m = message.members;
  // Sizes first: signatures cost time.
  if (m.empty() || m.size() > config_.group_size) return "it has no members or too many";
  if (message.epoch != request_.epoch || message.state != request_.state)
    return "it is for another state";
  if (message.value_count != value_count() || message.second_values != request_.second.value_count)
    return "it is for another vector";
  // All members have the same configuration. Small chunks of a faulty leader would take many times
  // the memory of the vector.
  if (message.chunk_bytes != piece_bytes(config_, value_count())) return "it has other chunks";
  if (message.codec != request_.codecs.number()) return "it has another codec";
  if (message.split != static_cast<std::uint8_t>(config_.split)) return "it has another split";
  bool has_us = false;
  for (const auto& who : m) {
    if (!possible(who) || (config_.most_weight > 0 && who.weight > config_.most_weight))
      return "it has impossible member data";
    if (!is_of(who.peer, who.address) ||
        io_.member_of(caf::actor_cast<caf::strong_actor_ptr>(who.address)) != member_of(who.key))
      return "a member has an address of another host";
    if (is_new(who)) return "a newcomer's contribution does not count yet";
    has_us =
        has_us || (who.peer == self_.peer && who.address == self_.address && who.by == self_.by);
  }
  if (!has_us) return "it lacks this peer, or changes what this peer said";
  if (auto fine = check_roster(message, checker()); !fine) return fine.error();
  return std::nullopt;
}

void matchmaking::on(const group_begun& message, const caf::strong_actor_ptr& sender) {
  if (over_ || !leader_ || !is(ready_.at(*leader_).address, sender) ||
      declined_.contains(message.group))
    return decline(message, sender);
  auto flaw = flaw_of(message);
  if (!flaw && message.members[message.leader].peer != *leader_) flaw = "another member leads it";
  if (flaw) {
    io_.suspect(*leader_, "group_begun that contradicts what was agreed: " + *flaw);
    return fail(reason::bad_message);
  }
  over_ = true;
  gathered_ = io_.time() - started_;
  begun_ = message;
  begun_->boundaries = boundaries_of(message);
  on_.begun(*begun_);
}

/// A leader counts on this peer, which is in another group or in none. The answer is signed. So it
/// must not be for a group, or a second round, in which this peer votes.
void matchmaking::decline(const group_begun& message, const caf::strong_actor_ptr& sender) {
  const auto& m = message.members;
  if ((begun_ && message.group == begun_->group) || m.size() > config_.group_size) return;
  auto me = std::find_if(m.begin(), m.end(),
                         [&](const member_info& x) { return x.address == self_.address; });
  if (me == m.end() || message.leader >= m.size() || !is(m[message.leader].address, sender) ||
      me->by != self_.by || !check_roster(message, checker()))
    return io_.suspect(io_.peer_of(sender),
                       "group_begun of a group that this peer never asked to join");
  if (begun_ && m[message.leader].key == begun_->members[begun_->leader].key &&
      message.attempt == begun_->attempt) {
    contradiction proof;
    proof.what = contradiction::kind::two_groups;
    proof.culprit = m[message.leader].key;
    proof.first_roster = *begun_;
    proof.second_roster = message;
    // The second roster may hold any number in the place of the leader's.
    io_.convict(begun_->members[begun_->leader].peer, proof);
  }
  declined_.insert(message.group);
  auto index = static_cast<std::uint32_t>(me - m.begin());
  const auto by = io_.sign(decline_statement(message.group));
  for (auto other = m.begin(); other != m.end(); ++other)
    if (other != me && is_of(other->peer, other->address))
      io_.send_to(other->address, caf::make_message(member_declined{message.group, index, by}));
}

void matchmaking::close_if_complete() {
  if (over_ || leader_ || !looked_up_ || !may_lead()) return;
  if (!deadline_passed_) deadline_passed_ = !joined_.empty() && io_.failpoint(failpoint::hurried);
  if (deadline_passed_ && enough() && quorum()) return close();
  if (request_.quorum > 0 && !in_grace_ && quorum()) {
    in_grace_ = true;
    on_.quorum_came();
  }
  if (request_.wanted > 0 && joined_.size() + 1 < std::min(request_.wanted, config_.group_size))
    return;
  if (request_.wanted == 0 && joined_.size() + 1 < config_.group_size) {
    auto missing = [&](const auto& entry) { return !joined_.contains(entry.first); };
    if (std::any_of(expected_.begin(), expected_.end(), missing)) return;
    if (std::any_of(ready_.begin(), ready_.end(), [&](const auto& entry) {
          return missing(entry) && !sits_out(entry.second.address) && !is_bad(entry.second.address);
        }))
      return;
  }
  if (enough() && quorum()) close();
}

bool matchmaking::enough() const {
  const auto size = joined_.size() + 1;
  if (size < config_.min_group_size) return false;
  // A full group cannot grow.
  if (size >= config_.group_size) return true;
  // A member that only reduces follows no step, so it leads nobody on.
  const auto takers = static_cast<std::uint32_t>(std::count_if(
      joined_.begin(), joined_.end(), [](const auto& one) { return one.second.takes != 0; }));
  return takers + self_.takes >= request_.takers_needed;
}

bool matchmaking::quorum() const {
  auto weight = self_.weight;
  for (const auto& [peer, info] : joined_) weight += info.weight;
  if (weight == 0) return false;
  // A full group cannot grow: in a swarm larger than twice the group size, it never has half of the
  // samples.
  if (joined_.size() + 1 >= config_.group_size) return true;
  if (request_.quorum > 0) return weight >= std::min(request_.quorum, known_samples_);
  return 2 * weight >= known_samples_;
}

void matchmaking::close() {
  auto begin = as_roster();
  auto members = joined_;
  members.emplace(self_.peer, self_);
  begin.chunk_bytes = piece_bytes(config_, value_count());
  begin.split = static_cast<std::uint8_t>(config_.split);
  begin.attempt = deadline_;
  bool slow = false;
  for (const auto& [peer, info] : members) {
    if (peer == self_.peer) begin.leader = static_cast<std::uint32_t>(begin.members.size());
    begin.members.push_back(info);
    const auto known = request_.rate_factors.find(peer);
    const double factor = request_.bad_reducers.contains(member_of(info.key)) ? 0
                          : known == request_.rate_factors.end()              ? 1
                                                                              : known->second;
    slow = slow || factor < 1;
    begin.rate_factors.push_back(packed_factor(factor));
  }
  if (!slow) begin.rate_factors.clear();
  begin.group = group_of(begin);
  begin.by = io_.sign(group_statement(begin));
  begin.boundaries = boundaries_of(begin);
  over_ = true;
  begun_ = begin;
  for (const auto& [peer, info] : joined_) io_.send_to(info.address, caf::make_message(begin));
  io_.probe(probes::matchmaking_led);
  on_.begun(begin);
}

void matchmaking::on_deadline(bool last) {
  // Also counts if this peer leads later.
  deadline_passed_ = true;
  if (over_ || leader_) return;
  if (may_lead() && enough() && quorum()) return close();
  if (last) fail(may_lead() ? reason::group_too_small : reason::no_reducer);
}

void matchmaking::on_grace_over() {
  in_grace_ = false; // a member may have left: the next quorum has a grace period of its own
  if (over_ || leader_) return;
  if (may_lead() && enough() && quorum()) close();
}

void matchmaking::on_give_up() {
  if (!over_) fail(lost_leader_ ? reason::leader_lost : reason::matchmaking_timeout);
}

void matchmaking::fail(reason why) {
  over_ = true;
  if (leader_ && (why == reason::matchmaking_timeout || why == reason::bad_message))
    bad_leader_ =
        io_.member_of(caf::actor_cast<caf::strong_actor_ptr>(ready_.at(*leader_).address));
  for (const auto& [peer, info] : joined_)
    io_.send_to(info.address,
                caf::make_message(join_rejected{static_cast<std::uint8_t>(why), 0, 0, {}}));
  on_.failed(why);
}

} // namespace shoal::actors
