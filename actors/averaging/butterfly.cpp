#include "actors/averaging/butterfly.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include "actors/probes.hpp"
#include "kernels/reduce_weighted_mean.hpp"

namespace shoal::actors {

// -- assembly -------------------------------------------------------------------------------------

bool butterfly::assembly::add(std::uint64_t offset, const payload& data, std::uint64_t limit) {
  if (data.empty() || offset % 4 != 0 || data.size() % 4 != 0) return false;
  if (offset > limit || data.size() > limit - offset) return false;
  auto next = pieces.lower_bound(offset);
  if (next != pieces.end() && next->first < offset + data.size()) return false;
  if (next != pieces.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second.size() > offset) return false;
  }
  pieces.emplace(offset, data);
  bytes += data.size();
  return true;
}

payload butterfly::assembly::join(std::uint64_t size) const {
  if (pieces.size() == 1) return pieces.begin()->second;
  if (std::any_of(pieces.begin(), pieces.end(), [](const auto& p) { return p.second.is_hollow(); }))
    return payload::hollow(size);
  std::vector<float> values(size / 4);
  for (const auto& [offset, data] : pieces)
    std::memcpy(values.data() + offset / 4, data.bytes().data(), data.size());
  return payload{std::move(values)};
}

// -- set-up ---------------------------------------------------------------------------------------

butterfly::butterfly(const averaging_config& config, const round_request& request, const group_begun& group,
                     peer_id self, round_io& io, std::function<void(round_result)> done)
    : config_(config), request_(request), group_(group), io_(io), done_(std::move(done)) {
  size_ = static_cast<std::uint32_t>(group_.members.size());
  while (group_.members[self_].peer != self) ++self_;
  members_.resize(size_);
  contributions_.resize(size_);
  parts_.resize(size_);
}

std::uint64_t butterfly::part_bytes(std::uint32_t part) const {
  return 4 * (group_.boundaries[part + 1] - group_.boundaries[part]);
}

payload butterfly::own_slice(std::uint32_t part) const {
  return request_.values.slice(4 * group_.boundaries[part], part_bytes(part));
}

bool butterfly::from_member(std::uint32_t member, const caf::strong_actor_ptr& sender) const {
  return member < size_ && member != self_ && sender &&
         caf::actor_cast<caf::strong_actor_ptr>(group_.members[member].address) == sender;
}

void butterfly::start() {
  started_ = io_.time();
  for (std::uint32_t m = 0; m < size_; ++m) {
    contributions_[m].last_progress = started_;
    contributions_[m].left_out = group_.members[m].weight == 0;  // it only wants the result
    members_[m].finished = apart(m);
    if (m != self_) io_.watch(group_.members[m].address);
  }
  if (request_.weight > 0) {
    auto& mine = contributions_[self_];
    mine.complete = true;
    if (part_bytes(self_) > 0) mine.data.add(0, own_slice(self_), part_bytes(self_));
    for (auto to : others())
      if (part_bytes(to) > 0) queue(to, false, to, own_slice(to));
  }
  for (std::uint32_t m = 0; m < size_; ++m) chunks_to_send_ += members_[m].waiting.size();
  for (auto to : others()) pump(to);
  reduce_if_ready();
  finish_if_complete();
}

std::vector<std::uint32_t> butterfly::others() const {
  // Starts with the next member, so that not everybody sends to the first one at once.
  std::vector<std::uint32_t> out;
  for (std::uint32_t step = 1; step < size_; ++step) out.push_back((self_ + step) % size_);
  if (config_.mutant == mutant::unordered_peers) {
    // As in a hash map keyed by pointers.
    auto where = [&](std::uint32_t m) {
      auto address = reinterpret_cast<std::uintptr_t>(caf::actor_cast<caf::abstract_actor*>(group_.members[m].address));
      return (std::uint64_t{address} >> 4) * 0x9e3779b97f4a7c15u >> 20;
    };
    std::sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) { return where(a) < where(b); });
  }
  return out;
}

bool butterfly::apart(std::uint32_t member) const {
  return member != self_ && group_.members[self_].rate == 0 && group_.members[member].rate == 0;
}

bool butterfly::relies_on_us(std::uint32_t asker) const {
  if (group_.members[self_].rate == 0 || group_.members[asker].rate > 0) return false;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (m != asker && group_.members[m].rate == 0 && !members_[m].down) return true;
  return false;
}

void butterfly::queue(std::uint32_t to, bool reduced, std::uint32_t part, const payload& data) {
  auto piece = std::max<std::uint64_t>(4, config_.chunk_bytes / 4 * 4);
  for (std::uint64_t offset = 0; offset < data.size(); offset += piece)
    members_[to].waiting.push_back(
        {reduced, part, offset, data.slice(offset, std::min<std::uint64_t>(piece, data.size() - offset))});
}

void butterfly::pump(std::uint32_t to) {
  auto& member = members_[to];
  while (!member.down && member.in_flight < config_.window_chunks && !member.waiting.empty()) {
    auto next = std::move(member.waiting.front());
    member.waiting.pop_front();
    ++member.in_flight;
    const auto& address = group_.members[to].address;
    if (next.reduced)
      io_.send_to(address, caf::make_message(reduced_chunk{group_.group, next.part, next.offset,
                                                           parts_[next.part].weight, parts_[next.part].senders,
                                                           std::move(next.data)}));
    else
      io_.send_to(address, caf::make_message(
                               part_chunk{group_.group, self_, next.part, next.offset, std::move(next.data)}));
  }
}

// -- reducing my part -----------------------------------------------------------------------------

void butterfly::on(const part_chunk& message, const caf::strong_actor_ptr& sender) {
  if (!from_member(message.sender, sender) || message.part != self_)
    return io_.suspect(0, "part chunk that is not its sender's to send");
  io_.send_to(group_.members[message.sender].address,
              caf::make_message(chunk_received{group_.group, self_, message.part, 0}));
  auto& from = contributions_[message.sender];
  if (reduced_ || from.left_out) return;  // too late
  if (from.complete || !from.data.add(message.offset, message.data, part_bytes(self_)))
    return io_.suspect(group_.members[message.sender].peer, "part chunk that does not fit its part");
  from.last_progress = io_.time();
  from.complete = from.data.bytes == part_bytes(self_);
  reduce_if_ready();
}

void butterfly::leave_out(std::uint32_t sender, reason why) {
  auto& from = contributions_[sender];
  if (from.complete || from.left_out) return;
  from.left_out = true;
  from.data = {};
  if (trouble_ == reason::none) trouble_ = why;
  reduce_if_ready();
}

void butterfly::check_senders() {
  if (reduced_) return;
  for (std::uint32_t m = 0; m < size_; ++m) {
    auto& from = contributions_[m];
    if (!from.complete && !from.left_out && io_.time() - from.last_progress >= config_.sender_timeout)
      leave_out(m, reason::sender_timeout);
  }
}

void butterfly::reduce_if_ready() {
  if (reduced_ || part_bytes(self_) == 0) return;
  auto open = [](const contribution_state& c) { return !c.complete && !c.left_out; };
  if (std::none_of(contributions_.begin(), contributions_.end(), open)) reduce();
}

void butterfly::reduce() {
  reduced_ = true;
  auto bytes = part_bytes(self_);
  std::vector<std::uint32_t> order;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (contributions_[m].complete) order.push_back(m);
  payload values = payload::hollow(bytes);
  std::uint64_t weight = 0;
  std::vector<std::uint32_t> used;
  if (!request_.values.is_hollow()) {
    kernels::weighted_mean_reducer mean(bytes / 4);
    for (auto m : order) {
      auto w = config_.mutant == mutant::equal_weights ? 1 : group_.members[m].weight;
      auto data = contributions_[m].data.join(bytes);
      if (data.is_hollow() || !mean.add(m, static_cast<double>(w), data.floats())) {
        io_.suspect(group_.members[m].peer, "contribution with values that cannot be averaged");
        if (trouble_ == reason::none) trouble_ = reason::bad_message;
        continue;
      }
      used.push_back(m);
      weight += group_.members[m].weight;
    }
    if (used.empty()) return fail(trouble_ == reason::none ? reason::sender_lost : trouble_);
    auto result = mean.finish();
    if (!result) return fail(reason::bad_message);
    if (config_.mutant == mutant::wrong_denominator) {
      double all = 0;
      for (const auto& member : group_.members) all += static_cast<double>(member.weight);
      for (auto& x : *result) x = static_cast<float>(x * (mean.total_weight() / all));
    }
    if (config_.mutant == mutant::divide_by_peers)
      for (auto& x : *result) x = static_cast<float>(x * (mean.total_weight() / static_cast<double>(used.size())));
    values = payload{std::move(*result)};
  } else {
    if (order.empty()) return fail(trouble_ == reason::none ? reason::sender_lost : trouble_);
    used = order;
    for (auto m : order) weight += group_.members[m].weight;
  }
  std::sort(used.begin(), used.end());
  for (auto& c : contributions_) c.data = {};
  hold(self_, std::move(values), std::move(used), weight);
  for (auto to : others()) {
    if (members_[to].down) continue;
    auto before = members_[to].waiting.size();
    queue(to, true, self_, *parts_[self_].values);
    members_[to].reduced_unacked = static_cast<std::uint32_t>(members_[to].waiting.size() - before);
    pump(to);
  }
  finish_if_complete();
}

void butterfly::on(const chunk_received& message, const caf::strong_actor_ptr& sender) {
  if (!from_member(message.member, sender)) return io_.suspect(0, "acknowledgement by a stranger");
  auto& to = members_[message.member];
  if (to.down) return;  // it was taken for dead: what it had sent before that may still arrive
  if (to.in_flight == 0) return io_.suspect(group_.members[message.member].peer, "acknowledgement of nothing");
  --to.in_flight;
  if (!message.reduced) {
    ++chunks_confirmed_;
    if (chunks_confirmed_ == 1) io_.probe(probes::first_part_sent);
    if (chunks_confirmed_ == (chunks_to_send_ + 1) / 2) io_.probe(probes::half_sent);
  } else if (message.part == self_ && to.reduced_unacked > 0 && --to.reduced_unacked == 0) {
    served_.insert(message.member);
    if (served_.size() == size_ / 2) io_.probe(probes::half_replied);
  }
  pump(message.member);
}

// -- getting the others' parts --------------------------------------------------------------------

void butterfly::hold(std::uint32_t part, payload values, std::vector<std::uint32_t> senders,
                     std::uint64_t weight) {
  auto& state = parts_[part];
  state.values = std::move(values);
  state.senders = std::move(senders);
  state.weight = weight;
  state.incoming.clear();
  for (auto asker : std::exchange(state.askers, {})) answer(part, asker, true);
}

void butterfly::on(const reduced_chunk& message, const caf::strong_actor_ptr& sender) {
  std::uint32_t from = 0;
  while (from < size_ && !from_member(from, sender)) ++from;
  if (from == size_ || message.part >= size_) return io_.suspect(0, "reduced chunk by a stranger");
  io_.send_to(group_.members[from].address,
              caf::make_message(chunk_received{group_.group, self_, message.part, 1}));
  auto& part = parts_[message.part];
  if (part.values || finished_) return;
  auto guilty = group_.members[from].peer;
  if (from != message.part && !part.yes.contains(from))
    return io_.suspect(guilty, "reduced chunk of a part that is not its own");
  // The denominator must be the weight of exactly those senders whose data is in it.
  std::uint64_t weight = 0;
  std::uint32_t next = 0;
  for (auto s : message.senders) {
    if (s >= size_ || s < next || group_.members[s].weight == 0) return io_.suspect(guilty, "reduced chunk with an impossible list of senders");
    next = s + 1;
    weight += group_.members[s].weight;
  }
  if (message.senders.empty() || weight != message.weight)
    return io_.suspect(guilty, "reduced chunk whose weight is not that of its senders");
  auto& data = part.incoming[from];
  if (data.pieces.empty() && part.senders.empty()) {
    part.senders = message.senders;
    part.weight = message.weight;
  }
  if (message.senders != part.senders || !data.add(message.offset, message.data, part_bytes(message.part)))
    return io_.suspect(guilty, "reduced chunk that does not fit its part");
  if (data.bytes < part_bytes(message.part)) return;
  auto values = data.join(part_bytes(message.part));
  hold(message.part, std::move(values), message.senders, message.weight);
  finish_if_complete();
}

void butterfly::on(const part_query& message, const caf::strong_actor_ptr& sender) {
  if (!from_member(message.member, sender) || message.part >= size_ || part_bytes(message.part) == 0)
    return io_.suspect(0, "part query that makes no sense");
  auto& part = parts_[message.part];
  if (part.values) return answer(message.part, message.member, true);
  // We cannot say no while it may still reach us: the asker would fail and we would not.
  bool hopeless = finished_ || (members_[message.part].down && part.yes.empty() && !relies_on_us(message.member));
  if (hopeless) return answer(message.part, message.member, false);
  part.askers.push_back(message.member);
}

void butterfly::answer(std::uint32_t part, std::uint32_t asker, bool have) {
  if (members_[asker].down) return;
  io_.send_to(group_.members[asker].address,
              caf::make_message(part_answer{group_.group, self_, part, have ? std::uint8_t{1} : std::uint8_t{0}}));
  if (!have) return;
  queue(asker, true, part, *parts_[part].values);
  pump(asker);
}

void butterfly::recover(std::uint32_t number) {
  auto& part = parts_[number];
  if (part.values || finished_ || part_bytes(number) == 0 || !members_[number].down) return;
  if (!part.asked) {
    part.asked = true;
    part.incoming.erase(number);
    if (part.incoming.empty()) part.senders.clear();
    for (std::uint32_t m = 0; m < size_; ++m)
      if (apart(m))
        part.no.insert(m);
      else if (m != self_ && !members_[m].down)
        io_.send_to(group_.members[m].address, caf::make_message(part_query{group_.group, self_, number}));
  }
  if (part.yes.empty())
    for (auto asker : std::exchange(part.askers, {}))
      if (relies_on_us(asker))
        part.askers.push_back(asker);
      else
        answer(number, asker, false);
  for (std::uint32_t m = 0; m < size_; ++m)
    if (m != self_ && !members_[m].down && !part.no.contains(m)) return;  // somebody may still have it
  fail(members_[number].lost == reason::member_declined ? reason::member_declined : reason::reducer_lost);
}

void butterfly::on(const part_answer& message, const caf::strong_actor_ptr& sender) {
  if (!from_member(message.member, sender) || message.part >= size_ || !parts_[message.part].asked)
    return io_.suspect(0, "part answer that nobody asked for");
  auto& part = parts_[message.part];
  if (message.have)
    part.yes.insert(message.member);
  else
    part.no.insert(message.member);
  recover(message.part);
}

void butterfly::on(const member_finished& message, const caf::strong_actor_ptr& sender) {
  if (!from_member(message.member, sender)) return io_.suspect(0, "farewell by a stranger");
  members_[message.member].finished = true;
}

void butterfly::on_down(const caf::actor_addr& whom) {
  for (std::uint32_t m = 0; m < size_; ++m)
    if (m != self_ && caf::actor_cast<caf::actor_addr>(group_.members[m].address) == whom) lose(m, reason::sender_lost);
  for (std::uint32_t part = 0; part < size_; ++part) recover(part);
}

void butterfly::on(const member_declined& message, const caf::strong_actor_ptr& sender) {
  if (!from_member(message.member, sender)) return io_.suspect(0, "refusal of a group by a stranger");
  lose(message.member, reason::member_declined);
  for (std::uint32_t part = 0; part < size_; ++part) recover(part);
}

void butterfly::lose(std::uint32_t m, reason why) {
  auto& member = members_[m];
  if (member.down) return;
  member.down = true;
  member.lost = why;
  member.waiting.clear();
  member.in_flight = 0;
  for (auto& part : parts_) {
    part.yes.erase(m);
    part.incoming.erase(m);
    if (!part.values && part.incoming.empty()) part.senders.clear();
  }
  leave_out(m, why);
}

// -- the end --------------------------------------------------------------------------------------

void butterfly::finish_if_complete() {
  if (finished_) return;
  for (std::uint32_t part = 0; part < size_; ++part)
    if (part_bytes(part) > 0 && !parts_[part].values) return;
  round_result result;
  result.outcome = outcome::ok;
  payload joined;
  if (request_.values.is_hollow()) {
    joined = payload::hollow(request_.values.size());
  } else {
    std::vector<float> values(request_.values.size() / 4);
    for (std::uint32_t part = 0; part < size_; ++part)
      if (part_bytes(part) > 0)
        std::memcpy(values.data() + group_.boundaries[part], parts_[part].values->bytes().data(), part_bytes(part));
    joined = payload{std::move(values)};
  }
  auto givers = static_cast<std::size_t>(std::count_if(group_.members.begin(), group_.members.end(),
                                                       [](const member_info& m) { return m.weight > 0; }));
  auto lost = reason::sender_timeout;
  for (const auto& member : members_)
    if (member.down && !member.finished) lost = member.lost;
  for (std::uint32_t part = 0; part < size_; ++part) {
    if (part_bytes(part) == 0) continue;
    result.parts.push_back(
        {group_.boundaries[part], group_.boundaries[part + 1], parts_[part].senders, parts_[part].weight});
    if (parts_[part].senders.size() < givers) {
      result.outcome = outcome::partial;
      if (trouble_ == reason::none) trouble_ = lost;
    }
  }
  result.reason = result.outcome == outcome::ok ? reason::none : trouble_;
  result.values = std::move(joined);
  io_.probe(probes::before_commit);
  finish(std::move(result));
}

void butterfly::fail(reason why) {
  if (finished_) return;
  round_result result;
  result.outcome = outcome::failed;
  result.reason = why;
  finish(std::move(result));
}

void butterfly::finish(round_result result) {
  finished_ = true;
  result.group = group_.group;
  result.epoch = group_.epoch;
  result.member = self_;
  result.members = group_.members;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (members_[m].lost == reason::member_declined) result.declined.push_back(m);
  result.started = started_;
  for (std::uint32_t part = 0; part < size_; ++part)
    for (auto asker : std::exchange(parts_[part].askers, {})) answer(part, asker, parts_[part].values.has_value());
  for (std::uint32_t m = 0; m < size_; ++m)
    if (m != self_ && !members_[m].down && !apart(m))
      io_.send_to(group_.members[m].address, caf::make_message(member_finished{group_.group, self_}));
  done_(std::move(result));
}

void butterfly::on_round_timeout() { fail(reason::reducer_timeout); }

bool butterfly::idle() const {
  return finished_ && std::all_of(members_.begin(), members_.end(), [this](const member_state& m) {
           return &m == &members_[self_] || m.down || m.finished;
         });
}

}  // namespace shoal::actors
