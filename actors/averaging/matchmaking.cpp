#include "actors/averaging/matchmaking.hpp"

#include "actors/failpoints.hpp"
#include "actors/probes.hpp"
#include "kernels/averaging_plan.hpp"
#include "kernels/balanced_shares.hpp"
#include "kernels/part_boundaries.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

namespace shoal::actors {

namespace {

bool is(const caf::actor& address, const caf::strong_actor_ptr& sender) {
  return sender && address && caf::actor_cast<caf::strong_actor_ptr>(address) == sender;
}

/// False for values that no correct member sends. A member that takes no result contributes
/// nothing. A `reached` above `all` would win all parts.
bool possible(const member_info& who) {
  return (who.takes != 0 || who.weight == 0) &&
         who.reached <= static_cast<std::uint8_t>(reached_by::all);
}

std::uint64_t chunk_bytes(const averaging_config& config) {
  return std::max<std::uint64_t>(4, config.chunk_bytes / 4 * 4);
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
      deadline_(deadline) {}

payload matchmaking::bid::pack() const {
  std::vector<std::byte> out(sizeof deadline + 1);
  std::memcpy(out.data(), &deadline, sizeof deadline);
  out.back() = leads ? std::byte{1} : std::byte{0};
  return payload{std::move(out)};
}

matchmaking::bid matchmaking::bid::unpack(const payload& value) {
  bid out{std::numeric_limits<std::int64_t>::max(), true};
  if (value.is_size_only() || value.size() != sizeof out.deadline + 1) return out;
  std::memcpy(&out.deadline, value.bytes().data(), sizeof out.deadline);
  out.leads = value.bytes().back() != std::byte{0};
  return out;
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
    if (peer.peer == self_.peer || is_gone(peer.address)) continue;
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
    if (id && entry->address && *id != self_.peer)
      learn(*id, entry->address, bid::unpack(entry->value));
  }
  choose_leader();
  close_if_complete();
}

bool matchmaking::may_lead() const {
  return self_.reached > 0 || (ready_.empty() && expected_.empty());
}

void matchmaking::learn(peer_id peer, const caf::actor& address, bid what) {
  if (is_gone(address)) return;
  auto& known = ready_[peer];
  known.what = what;
  if (known.address == address) return;
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
    if (const rank theirs{one.what.deadline, peer}; one.what.leads && (!first || theirs < *first))
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

void matchmaking::on(const join_request& message) {
  const auto& who = message.member;
  auto reject = [&](reason why, peer_id suggested = 0, std::int64_t deadline = 0,
                    const caf::actor& address = {}) {
    io_.send_to(who.address, caf::make_message(join_rejected{static_cast<std::uint8_t>(why),
                                                             suggested, deadline, address}));
  };
  if (!who.address) return io_.suspect(who.peer, "join request without an address");
  if (!possible(who)) {
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
  if (leader_)
    return reject(reason::none, *leader_, ready_.at(*leader_).what.deadline,
                  ready_.at(*leader_).address);
  if (!may_lead() && joined_.empty() && who.reached == 0) return reject(reason::cancelled);
  if (who.reached > 0 && (rank{message.deadline, who.peer} < own_rank() || self_.reached == 0)) {
    // The requester should lead. It will find that out, as this peer does once the DHT names it.
    learn(who.peer, who.address, {message.deadline, true});
    choose_leader();
    return reject(reason::none, who.peer, message.deadline, who.address);
  }
  if (!joined_.contains(who.peer) &&
      (joined_.size() + 1 >= config_.group_size || io_.failpoint(failpoint::full)))
    return reject(reason::group_closed);
  learn(who.peer, who.address, {message.deadline, who.reached > 0});
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
  if (why != reason::none) return fail(why);
  auto& refuser = ready_.at(*leader_);
  const rank refused_by{refuser.what.deadline, *leader_};
  leader_.reset();
  accepted_ = false;
  // Only a leader that precedes the refuser is accepted, so no peer is sent in a circle. Otherwise
  // this peer's data on the refuser is old: the refuser does not count as a leader until the next
  // look-up.
  if (message.suggested && rank{message.suggested_deadline, message.suggested_peer} < refused_by &&
      message.suggested_peer != self_.peer)
    learn(message.suggested_peer, message.suggested, {message.suggested_deadline, true});
  else
    refuser.what.leads = false;
  choose_leader();
}

void matchmaking::on(const join_withdrawn& message, const caf::strong_actor_ptr& sender) {
  auto found = joined_.find(message.peer);
  if (over_ || found == joined_.end() || !is(found->second.address, sender)) return;
  joined_.erase(found);
}

bool matchmaking::valid(const group_begun& message) const {
  const auto& m = message.members;
  if (message.epoch != request_.epoch || message.state != request_.state) return false;
  const auto rounds = request_.second.value_count > 0 ? 2u : 1u;
  if (m.empty() || m.size() > config_.group_size ||
      message.boundaries.size() != rounds * (m.size() + 1))
    return false;
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto cuts = std::span(message.boundaries).subspan(round * (m.size() + 1), m.size() + 1);
    const auto values = round == 0 ? request_.values.size() / 4 : request_.second.value_count;
    if (!std::is_sorted(cuts.begin(), cuts.end()) || cuts.front() != 0 || cuts.back() != values)
      return false;
  }
  // All members have the same configuration. Small chunks of a faulty leader would take many times
  // the memory of the vector.
  if (message.chunk_bytes != chunk_bytes(config_)) return false;
  if (message.codec != request_.codecs.number()) return false;
  for (std::size_t i = 0; i < m.size(); ++i) {
    if (!m[i].address || !possible(m[i])) return false;
    if (i > 0 && m[i - 1].peer >= m[i].peer) return false;
  }
  auto me =
      std::find_if(m.begin(), m.end(), [&](const member_info& x) { return x.peer == self_.peer; });
  return me != m.end() && me->weight == self_.weight && me->samples == self_.samples;
}

void matchmaking::on(const group_begun& message, const caf::strong_actor_ptr& sender) {
  if (over_ || !leader_ || !is(ready_.at(*leader_).address, sender))
    return decline(message, sender);
  if (!valid(message)) {
    io_.suspect(*leader_, "group_begun that contradicts what was agreed");
    return fail(reason::bad_message);
  }
  over_ = true;
  gathered_ = io_.time() - started_;
  begun_ = message.group;
  on_.begun(message);
}

void matchmaking::decline(const group_begun& message, const caf::strong_actor_ptr& sender) {
  const auto& m = message.members;
  if (message.group == begun_ || m.size() > config_.group_size) return;
  auto me = std::find_if(m.begin(), m.end(),
                         [&](const member_info& x) { return x.address == self_.address; });
  auto by_member =
      std::any_of(m.begin(), m.end(), [&](const member_info& x) { return is(x.address, sender); });
  if (me == m.end() || !by_member)
    return io_.suspect(0, "group_begun of a group that this peer never asked to join");
  auto index = static_cast<std::uint32_t>(me - m.begin());
  for (auto other = m.begin(); other != m.end(); ++other)
    if (other != me && other->address)
      io_.send_to(other->address, caf::make_message(member_declined{message.group, index}));
}

void matchmaking::on_down(const caf::actor_addr& whom) {
  if (over_) return;
  forget(whom, true);
  choose_leader();
  close_if_complete();
}

void matchmaking::forget(const caf::actor_addr& whom, bool died) {
  auto gone = [&](const caf::actor& address) {
    return caf::actor_cast<caf::actor_addr>(address) == whom;
  };
  gone_.push_back(whom);
  std::erase_if(expected_, [&](const auto& entry) { return gone(entry.second); });
  for (auto i = ready_.begin(); i != ready_.end();) {
    if (!gone(i->second.address)) {
      ++i;
      continue;
    }
    joined_.erase(i->first);
    if (leader_ == i->first) {
      leader_.reset();
      accepted_ = false;
      lost_leader_ = lost_leader_ || died;
    }
    i = ready_.erase(i);
  }
}

void matchmaking::close_if_complete() {
  if (over_ || leader_ || !looked_up_ || !may_lead()) return;
  if (!deadline_passed_) deadline_passed_ = !joined_.empty() && io_.failpoint(failpoint::hurried);
  if (deadline_passed_ && joined_.size() + 1 >= config_.min_group_size && quorum()) return close();
  if (request_.quorum > 0 && !in_grace_ && quorum()) {
    in_grace_ = true;
    on_.quorum_came();
  }
  if (request_.wanted > 0 && joined_.size() + 1 < std::min(request_.wanted, config_.group_size))
    return;
  if (request_.wanted == 0 && joined_.size() + 1 < config_.group_size) {
    auto missing = [&](const auto& entry) { return !joined_.contains(entry.first); };
    if (std::any_of(expected_.begin(), expected_.end(), missing)) return;
    if (std::any_of(ready_.begin(), ready_.end(), missing)) return;
  }
  if (joined_.size() + 1 >= config_.min_group_size && quorum()) close();
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

std::vector<double> matchmaking::shares(const std::vector<member_info>& members) const {
  // The members that are reached best get parts: those reached by all; else those with a relay;
  // else all.
  std::uint8_t best = 0;
  for (const auto& m : members) best = std::max(best, m.reached);
  std::vector<kernels::averaging_peer> peers;
  for (const auto& m : members) {
    const auto known = request_.rate_factors.find(m.peer);
    const double factor = known == request_.rate_factors.end() ? 1 : known->second;
    // A peer may declare any rate.
    const auto rate = [&](std::uint64_t said) {
      return std::clamp(factor * static_cast<double>(said), 1.0, kernels::fastest_rate);
    };
    peers.push_back(
        {rate(m.rate_up), rate(m.rate_down), m.weight > 0, m.takes != 0, m.reached == best});
  }
  std::vector<double> out;
  for (const auto& p : peers) out.push_back(p.reduces ? std::min(p.up, p.down) : 0);
  if (config_.split == part_split::parameter_server) {
    const auto widest = std::max_element(out.begin(), out.end());
    for (auto i = out.begin(); i != out.end(); ++i) *i = i == widest ? 1 : 0;
    return out;
  }
  if (config_.split == part_split::equal) {
    for (auto& share : out) share = share > 0 ? 1 : 0;
    return out;
  }
  // If all members contribute and receive, a closed form gives the shares. Else fill_lines() does,
  // which without pair limits finds the linear program's optimum.
  if (std::all_of(peers.begin(), peers.end(),
                  [](const auto& p) { return p.contributes && p.receives; }))
    return kernels::balanced_shares(out);
  const auto plan = kernels::fill_lines(peers);
  return plan ? plan->shares : kernels::balanced_shares(out);
}

void matchmaking::close() {
  group_begun begin;
  begin.epoch = request_.epoch;
  begin.state = request_.state;
  auto members = joined_;
  members.emplace(self_.peer, self_);
  begin.codec = request_.codecs.number();
  begin.chunk_bytes = chunk_bytes(config_);
  hasher id;
  id.add(std::string_view{"group"})
      .add(request_.epoch)
      .add(request_.state.high)
      .add(request_.state.low);
  id.add(io_.time().count());
  for (const auto& [peer, info] : members) {
    begin.members.push_back(info);
    id.add(peer).add(info.weight);
  }
  begin.group = group_id::from(id.finish());
  const auto by_member = shares(begin.members);
  begin.boundaries = kernels::part_boundaries(request_.values.size() / 4, by_member);
  if (request_.second.value_count > 0) {
    const auto more = kernels::part_boundaries(request_.second.value_count, by_member);
    begin.boundaries.insert(begin.boundaries.end(), more.begin(), more.end());
  }
  over_ = true;
  begun_ = begin.group;
  for (const auto& [peer, info] : joined_) io_.send_to(info.address, caf::make_message(begin));
  io_.probe(probes::matchmaking_led);
  on_.begun(begin);
}

void matchmaking::on_deadline(bool last) {
  // Also counts if this peer leads later.
  deadline_passed_ = true;
  if (over_ || leader_) return;
  if (may_lead() && joined_.size() + 1 >= config_.min_group_size && quorum()) return close();
  if (last) fail(may_lead() ? reason::group_too_small : reason::no_reducer);
}

void matchmaking::on_grace_over() {
  in_grace_ = false; // a member may have left: the next quorum has a grace period of its own
  if (over_ || leader_) return;
  if (may_lead() && joined_.size() + 1 >= config_.min_group_size && quorum()) close();
}

void matchmaking::on_give_up() {
  if (!over_) fail(lost_leader_ ? reason::leader_lost : reason::matchmaking_timeout);
}

void matchmaking::fail(reason why) {
  over_ = true;
  for (const auto& [peer, info] : joined_)
    io_.send_to(info.address,
                caf::make_message(join_rejected{static_cast<std::uint8_t>(why), 0, 0, {}}));
  on_.failed(why);
}

} // namespace shoal::actors
