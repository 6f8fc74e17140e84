#include "actors/averaging/butterfly.hpp"

#include "actors/averaging/guard.hpp"
#include "actors/probes.hpp"
#include "kernels/base/check.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

namespace {

constexpr std::uint32_t acknowledges_up_to = 16; // members
// Values of chunk_received::reduced, which says what came.
constexpr std::uint8_t slice_in_time = 0, mean_of_part = 1, late_slice = 2, slice_left_out = 3;

std::vector<bool> takers(const group_begun& group) {
  std::vector<bool> out;
  for (const auto& member : group.members) out.push_back(member.takes != 0);
  return out;
}

std::uint32_t index_of(peer_id peer, const group_begun& group) {
  std::uint32_t out = 0;
  while (group.members[out].peer != peer) ++out;
  return out;
}

} // namespace

// -- set-up ---------------------------------------------------------------------------------------

butterfly::butterfly(averaging_config config, round_request request, group_begun group,
                     peer_id self, round_io& io, std::function<void(round_result)> done)
    : config_(std::move(config)), request_(std::move(request)), values_(request_.values),
      group_(std::move(group)), io_(io), done_(std::move(done)), self_(index_of(self, group_)),
      size_(static_cast<std::uint32_t>(group_.members.size())), first_group_(group_of(group_)),
      layout_(group_.boundaries, group_.chunk_bytes, values_.is_size_only()),
      outbox_(size_, config_.window_chunks), ballot_(takers(group_), self_) {
  members_.resize(size_);
  parts_.resize(size_);
  part_times_.resize(size_);
  others_ = others();
  for (std::uint32_t p = 0; p < size_; ++p) {
    auto& part = parts_[p];
    part.grid = layout_.grid(p);
    part.source = p;
    part.missing = part.grid.count();
    part.chunks.resize(part.missing);
    if (part.missing > 0 && (takes(self_) || p == self_)) ++parts_missing_;
  }
  std::uint32_t most_chunks = 0;
  for (const auto& part : parts_) most_chunks = std::max(most_chunks, part.missing);
  acknowledges_ = size_ <= acknowledges_up_to || 2 * most_chunks > config_.window_chunks;
  drop_values();
}

bool butterfly::finite() const {
  return values_.is_size_only() || kernels::all_finite(values_.floats());
}

void butterfly::drop_values() {
  if (!giving() || !giving()->drops_values() || request_.weight == 0 || values_.is_size_only() ||
      !finite())
    return;
  float_buffer left(values_.size() / 4);
  for (std::uint32_t p = 0; p < size_; ++p)
    for (std::uint32_t k = 0; k < parts_[p].chunks.size(); ++k) {
      const auto chunk = *layout_.from_wire(
          giving(), p, k, layout_.to_wire(giving(), p, k, layout_.slice(values_, p, k)));
      const auto floats = chunk.floats();
      std::copy(floats.begin(), floats.end(),
                left.floats().begin() + static_cast<std::ptrdiff_t>(layout_.first_value(p, k)));
    }
  values_ = left.slice(0, values_.size());
}

std::vector<std::uint64_t> butterfly::weights() const {
  std::vector<std::uint64_t> out;
  for (const auto& member : group_.members) out.push_back(member.weight);
  return out;
}

bool butterfly::from_member(std::uint32_t member, const caf::strong_actor_ptr& sender) const {
  return member < size_ && member != self_ && sender &&
         caf::actor_cast<caf::strong_actor_ptr>(group_.members[member].address) == sender;
}

bool butterfly::listen_to(std::uint32_t member, const caf::strong_actor_ptr& sender,
                          const char* what) {
  if (from_member(member, sender))
    return !members_[member].down; // a lost member's messages may still arrive
  io_.suspect(io_.peer_of(sender), what);
  return false;
}

void butterfly::ban(std::uint32_t member, const char* why) {
  io_.suspect(group_.members[member].peer, why);
  lose_and_go_on(member, reason::bad_message);
}

std::vector<std::uint32_t> butterfly::others() const {
  // Starts with the next member, so that not everybody sends to the first one at once.
  std::vector<std::uint32_t> out;
  for (std::uint32_t step = 1; step < size_; ++step) out.push_back((self_ + step) % size_);
  config_.conduct->order_members(out, group_.members);
  return out;
}

bool butterfly::apart(std::uint32_t member) const {
  return member != self_ && !reachable(self_) && !reachable(member);
}

void butterfly::tell(std::uint32_t member, caf::message content) {
  if (!members_[member].down && !apart(member))
    io_.send_to(group_.members[member].address, std::move(content));
}

void butterfly::start() {
  started_ = io_.time();
  if ((giving() || request_.must_be_finite) && request_.weight > 0 && !finite())
    return fail(reason::not_finite);
  for (std::uint32_t m = 0; m < size_; ++m) {
    members_[m].finished = apart(m);
    if (m != self_) io_.watch(group_.members[m].address);
  }
  if (takes(self_) && !values_.is_size_only()) result_ = float_buffer(values_.size() / 4);
  auto& mine = parts_[self_];
  if (mine.missing > 0) {
    // With a codec what is held is what the others get of the means.
    const auto into = replying() ? float_buffer{} : result_;
    mine.reduction.emplace(mine.grid, weights(), values_.is_size_only(), config_, started_, into,
                           layout_.first_value(self_, 0), extent());
    mine.recovery.reduce(chunk_set(mine.missing, true));
    mine.reduction->open(mine.recovery.reducing(), started_);
    for (auto to : others_) {
      if (!takes(to)) continue;
      mine.receivers.emplace(to, chunk_set(mine.missing));
      members_[to].replies_unconfirmed = mine.missing;
    }
  }
  if (request_.weight > 0)
    for (auto to : others_)
      for (std::uint32_t k = 0; k < parts_[to].missing; ++k) outbox_.queue(to, {false, to, k});
  for (auto to : others_) chunks_to_send_ += outbox_.waiting(to);
  if (guard_ != nullptr) guard_->start();
  for (auto to : others_) pump(to);
  if (mine.missing > 0) contribute(self_, mine.recovery.reducing());
  vote_if_complete();
}

// -- sending --------------------------------------------------------------------------------------

void butterfly::values_may_leave(const std::vector<std::uint32_t>& without) {
  if (finished_) return;
  for (auto m : without) leave_out(self_, m, reason::sender_timeout);
  if (parts_[self_].reduction) parts_[self_].reduction->expect_from(io_.time());
  for (auto to : others_) {
    if (parts_[to].missing > 0) guard_->send_hashes(to, to);
    pump(to);
  }
  reduce(self_);
}

std::vector<std::uint32_t> butterfly::reducers() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t p = 0; p < size_; ++p) out.push_back(parts_[p].direct ? p : size_);
  return out;
}

void butterfly::pump(std::uint32_t to) {
  if (guard_ != nullptr && !guard_->values_may_leave()) return;
  while (!members_[to].down) {
    const auto taken = outbox_.next(to);
    if (!taken) return;
    const auto& next = *taken;
    const auto& part = parts_[next.part];
    // A finished chunk was reduced without our slice. On a slow line the slice would only delay the
    // chunks that are wanted. A reducer that works by part needs our whole slice all the same.
    if (!next.reduced &&
        (by_part() ? part.missing == 0 : part.chunks[next.chunk].senders != nullptr))
      continue;
    if (acknowledges_) outbox_.sent(to);
    const auto offset = part.grid.offset(next.chunk);
    if (!next.reduced) {
      tell(to, caf::make_message(
                   part_chunk{group_.group, self_, next.part, offset,
                              layout_.to_wire(giving(), next.part, next.chunk,
                                              layout_.slice(values_, next.part, next.chunk))}));
      continue;
    }
    const auto& chunk = part.chunks[next.chunk];
    std::uint64_t weight = 0;
    for (auto s : *chunk.senders) weight += group_.members[s].weight;
    tell(to, caf::make_message(reduced_chunk{group_.group, next.part, offset, weight,
                                             *chunk.senders, chunk.wire}));
  }
}

void butterfly::on(const chunk_received& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "acknowledgement by a stranger")) return;
  auto& to = members_[message.member];
  if (message.reduced == slice_left_out) {
    if (message.part == message.member && to.in_time > 0) --to.in_time;
    return;
  }
  if (message.part >= size_ || !outbox_.confirmed(message.member))
    return ban(message.member, "acknowledgement of nothing");
  if (message.reduced != mean_of_part) {
    slice_arrived();
    if (message.reduced == slice_in_time && message.part == message.member) ++to.in_time;
  } else if (message.part == self_ && to.replies_unconfirmed > 0 && --to.replies_unconfirmed == 0) {
    reply_arrived(message.member);
  }
  pump(message.member);
}

/// One more chunk of ours is at its reducer.
void butterfly::slice_arrived() {
  ++chunks_confirmed_;
  if (chunks_confirmed_ == 1) io_.probe(probes::first_part_sent);
  if (chunks_confirmed_ == (chunks_to_send_ + 1) / 2) io_.probe(probes::half_sent);
}

/// One more member has all of our part.
void butterfly::reply_arrived(std::uint32_t at) {
  if (served_.insert(at).second && served_.size() == size_ / 2) io_.probe(probes::half_replied);
}

// -- reducing -------------------------------------------------------------------------------------

void butterfly::on(const part_chunk& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.sender, sender, "part chunk by a stranger")) return;
  if (message.part >= size_) return ban(message.sender, "part chunk of a part that there is not");
  const auto acknowledge = [&](bool in_time) {
    if (acknowledges_)
      tell(message.sender, caf::make_message(chunk_received{group_.group, self_, message.part,
                                                            in_time ? slice_in_time : late_slice}));
  };
  auto& part = parts_[message.part];
  auto chunk = layout_.find_chunk(giving(), message.part, message.offset, message.data);
  if (!chunk || (!part.recovery.reduces() && !finished_))
    return ban(message.sender, "part chunk that does not fit its part");
  if (finished_ || !part.reduction) return acknowledge(false);
  if (guard_ != nullptr) {
    const auto fits = guard_->fits(message.sender, message.part, *chunk, message.data);
    if (fits == round_guard::fit::unknown) return acknowledge(false);
    if (fits == round_guard::fit::wrong)
      return ban(message.sender, "part chunk that the member has not committed to");
  }
  auto values = layout_.from_wire(giving(), message.part, *chunk, message.data);
  if (!values) return ban(message.sender, "part chunk that the codec cannot read");
  const auto taken = part.reduction->add(message.sender, *chunk, std::move(*values), io_.time());
  if (taken == part_reduction::taken::wrong)
    return ban(message.sender, "part chunk that nobody asked for");
  acknowledge(taken == part_reduction::taken::yes);
  if (guard_ != nullptr && taken == part_reduction::taken::yes)
    guard_->keep(message.sender, message.part, *chunk, message.data);
  reduce(message.part);
}

void butterfly::contribute(std::uint32_t p, const chunk_set& chunks) {
  if (request_.weight > 0)
    for (std::uint32_t k = 0; k < chunks.size(); ++k)
      if (chunks[k]) {
        auto values = layout_.slice(values_, p, k);
        if (giving() && !giving()->drops_values())
          values = *layout_.from_wire(
              giving(), p, k, layout_.to_wire(giving(), p, k, values)); // as others get them
        parts_[p].reduction->add(self_, k, std::move(values), io_.time());
      }
  reduce(p);
}

void butterfly::leave_out(std::uint32_t p, std::uint32_t sender, reason why) {
  auto& part = parts_[p];
  if (!part.reduction) return;
  if (part.reduction->waits_for(sender) && trouble_ == reason::none) trouble_ = why;
  part.reduction->leave_out(sender);
}

void butterfly::check_senders() {
  if (finished_ || (guard_ != nullptr && !guard_->values_may_leave())) return;
  const auto now = io_.time();
  for (std::uint32_t p = 0; p < size_; ++p) {
    auto& part = parts_[p];
    if (!part.reduction) continue;
    for (auto m : part.reduction->silent(now, config_.sender_timeout))
      leave_out(p, m, reason::sender_timeout);
    if (now - started_ >= config_.round_timeout / 2)
      for (auto m : part.reduction->behind()) leave_out(p, m, reason::sender_timeout);
    reduce(p);
  }
  ask_for_certificate(true);
  if (!finished_ && hopeless_since_) fail_if_hopeless();
}

void butterfly::reduce(std::uint32_t p) {
  auto& part = parts_[p];
  // Holding the last chunk ends the reduction; so does the end of the round.
  while (part.reduction && !finished_) {
    auto next = part.reduction->next();
    if (!next) return;
    const auto& [faulty, outliers] = next->refused;
    for (const auto m : faulty)
      io_.suspect(group_.members[m].peer, "contribution with values that cannot be averaged");
    if (trouble_ == reason::none && !(faulty.empty() && outliers.empty()))
      trouble_ = reason::bad_message;
    // The slices of these members came in time, and the result lacks them all the same.
    for (const auto m : outliers)
      if (acknowledges_ && m != self_)
        tell(m, caf::make_message(chunk_received{group_.group, self_, p, slice_left_out}));
    if (next->senders.empty())
      return fail(trouble_ == reason::none ? reason::sender_lost : trouble_);
    auto wire = layout_.to_wire(replying(), p, next->chunk, next->values);
    auto values = replying() ? *layout_.from_wire(replying(), p, next->chunk, wire) : wire;
    if (p != self_) part.direct = false;
    hold(p, next->chunk, std::move(wire), values, std::move(next->senders));
  }
}

void butterfly::hold(std::uint32_t p, std::uint32_t number, payload wire, const payload& values,
                     std::vector<std::uint32_t> senders) {
  auto& part = parts_[p];
  auto& chunk = part.chunks[number];
  if (chunk.senders) return;
  chunk.wire = std::move(wire);
  if (!result_.empty()) {
    // Now, while others are still to come, and what it came in need not be kept.
    const auto here = result_.slice(4 * layout_.first_value(p, number), part.grid.size(number));
    if (!values.same_memory(here)) {
      const auto floats = values.floats();
      std::copy(floats.begin(), floats.end(),
                result_.floats().begin() +
                    static_cast<std::ptrdiff_t>(layout_.first_value(p, number)));
      if (!replying()) chunk.wire = here;
    }
  }
  chunk.version = chunk_version(senders, values);
  // Most chunks have the same senders as the one before.
  auto& before = part.chunks[number == 0 ? 0 : number - 1].senders;
  chunk.senders = before && *before == senders
                      ? before
                      : std::make_shared<const std::vector<std::uint32_t>>(std::move(senders));
  if (p == self_ && part.missing == part.chunks.size()) io_.probe(probes::first_reduced);
  const bool complete = --part.missing == 0;
  if (complete) {
    part_times_[p] = io_.time() - started_;
    part.reduction.reset();
    if (guard_ != nullptr && part.source == self_) {
      std::vector<id128> versions;
      for (const auto& each : part.chunks) versions.push_back(each.version);
      guard_->seal(p, versions);
    }
    if (takes(self_) || p == self_) --parts_missing_;
  }
  for (auto to : others_) {
    auto found = part.receivers.find(to);
    if (found == part.receivers.end() || found->second[number]) continue;
    found->second[number] = true;
    outbox_.queue(to, {true, p, number});
    pump(to);
  }
  if (!complete) return;
  answer_claims(p);
  vote_if_complete();
}

/// Sends it what we hold of the part and it does not.
void butterfly::serve(std::uint32_t to, std::uint32_t p) {
  auto& part = parts_[p];
  auto& has = part.receivers.at(to);
  for (std::uint32_t k = 0; k < has.size(); ++k)
    if (!has[k] && part.chunks[k].senders) {
      has[k] = true;
      outbox_.queue(to, {true, p, k});
    }
  pump(to);
}

// -- getting the others' parts --------------------------------------------------------------------

void butterfly::on(const reduced_chunk& message, const caf::strong_actor_ptr& sender) {
  std::uint32_t from = 0;
  while (from < size_ && !from_member(from, sender)) ++from;
  if (!listen_to(from, sender, "reduced chunk by a stranger")) return;
  if (message.part >= size_) return ban(from, "reduced chunk of a part that there is not");
  if (acknowledges_)
    tell(from, caf::make_message(chunk_received{group_.group, self_, message.part, mean_of_part}));
  auto& part = parts_[message.part];
  auto chunk = layout_.find_chunk(replying(), message.part, message.offset, message.data);
  if (!chunk) return ban(from, "reduced chunk that does not fit its part");
  if (finished_ || part.chunks[*chunk].senders) return;
  if (from != part.source && !part.recovery.fetches(*chunk, from))
    return ban(from, "reduced chunk of a part that is not its own");
  // The denominator must be the weight of exactly those senders whose data is in it.
  std::uint64_t weight = 0;
  std::uint32_t next = 0;
  for (auto s : message.senders) {
    if (s >= size_ || s < next || group_.members[s].weight == 0)
      return ban(from, "reduced chunk with an impossible list of senders");
    next = s + 1;
    weight += group_.members[s].weight;
  }
  if (message.senders.empty() || weight != message.weight)
    return ban(from, "reduced chunk whose weight is not that of its senders");
  // The mean of finite values is finite; another value would spoil the parameters for good.
  auto values = layout_.from_wire(replying(), message.part, *chunk, message.data);
  if (!values || (!values->is_size_only() && !kernels::all_finite(values->floats())))
    return ban(from, "reduced chunk with values that are not finite");
  if (!may_vote_for(message.part, message.senders, from)) censored_ = true;
  if (!acknowledges_ && std::binary_search(message.senders.begin(), message.senders.end(), self_))
    slice_arrived();
  if (from != message.part) part.direct = false;
  hold(message.part, *chunk, message.data, *values, message.senders);
}

} // namespace shoal::actors
