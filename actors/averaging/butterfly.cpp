#include "actors/averaging/butterfly.hpp"

#include "actors/probes.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

namespace {

constexpr std::uint32_t acknowledges_up_to = 16; // members

} // namespace

// -- set-up ---------------------------------------------------------------------------------------

butterfly::butterfly(const averaging_config& config, const round_request& request,
                     const group_begun& group, peer_id self, round_io& io,
                     std::function<void(round_result)> done)
    : config_(config), request_(request), values_(request.values), group_(group), io_(io),
      done_(std::move(done)) {
  size_ = static_cast<std::uint32_t>(group_.members.size());
  while (group_.members[self_].peer != self) ++self_;
  members_.resize(size_);
  parts_.resize(size_);
  part_times_.resize(size_);
  others_ = others();
  for (std::uint32_t p = 0; p < size_; ++p) {
    auto& part = parts_[p];
    part.grid = grid(p);
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
      const auto chunk = *from_wire(giving(), p, k, to_wire(giving(), p, k, own_slice(p, k)));
      const auto floats = chunk.floats();
      std::copy(floats.begin(), floats.end(),
                left.floats().begin() + static_cast<std::ptrdiff_t>(first_value(p, k)));
    }
  values_ = left.slice(0, values_.size());
}

chunk_grid butterfly::grid(std::uint32_t part) const {
  return {4 * (group_.boundaries[part + 1] - group_.boundaries[part]), group_.chunk_bytes};
}

payload butterfly::own_slice(std::uint32_t part, std::uint32_t chunk) const {
  const auto& grid = parts_[part].grid;
  return values_.slice(4 * group_.boundaries[part] + grid.offset(chunk), grid.size(chunk));
}

std::uint64_t butterfly::first_value(std::uint32_t part, std::uint32_t chunk) const {
  return group_.boundaries[part] + parts_[part].grid.offset(chunk) / 4;
}

payload butterfly::to_wire(const codec_ptr& codec, std::uint32_t part, std::uint32_t chunk,
                           const payload& values) const {
  if (!codec) return values;
  if (values.is_size_only())
    return payload::size_only(codec->bytes(first_value(part, chunk), values.size() / 4));
  auto bytes = codec->encode(first_value(part, chunk), values.floats());
  SHOAL_CHECK(bytes.ok(), "values that are finite can be written");
  return payload{std::move(*bytes)};
}

std::optional<payload> butterfly::from_wire(const codec_ptr& codec, std::uint32_t part,
                                            std::uint32_t chunk, const payload& wire) const {
  if (!codec) return wire;
  const auto bytes = parts_[part].grid.size(chunk);
  if (wire.is_size_only()) return payload::size_only(bytes);
  float_buffer values(bytes / 4);
  if (!codec->decode(first_value(part, chunk), wire.bytes(), values.floats())) return std::nullopt;
  return values.slice(0, bytes);
}

std::optional<std::uint32_t> butterfly::find_chunk(const codec_ptr& codec, std::uint32_t p,
                                                   std::uint64_t offset,
                                                   const payload& wire) const {
  const auto& grid = parts_[p].grid;
  if (offset >= grid.part_bytes || offset % grid.piece != 0 ||
      wire.is_size_only() != values_.is_size_only())
    return std::nullopt;
  const auto chunk = static_cast<std::uint32_t>(offset / grid.piece);
  const auto bytes = grid.size(chunk);
  if (codec ? !codec->fits(first_value(p, chunk), bytes / 4, wire.size()) : wire.size() != bytes)
    return std::nullopt;
  return chunk;
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
    return !members_[member].down; // what it had sent before may still arrive
  io_.suspect(0, what);
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
                           first_value(self_, 0));
    mine.reducing.assign(mine.missing, true);
    mine.reduction->open(mine.reducing, started_);
    for (auto to : others_) {
      if (!takes(to)) continue;
      mine.receivers.emplace(to, chunk_set(mine.missing));
      members_[to].replies_unconfirmed = mine.missing;
    }
  }
  if (request_.weight > 0)
    for (auto to : others_)
      for (std::uint32_t k = 0; k < parts_[to].missing; ++k) queue(to, {false, to, k});
  for (auto to : others_) chunks_to_send_ += members_[to].waiting.size();
  for (auto to : others_) pump(to);
  if (mine.missing > 0) contribute(self_, mine.reducing);
  vote_if_complete();
}

// -- sending --------------------------------------------------------------------------------------

void butterfly::pump(std::uint32_t to) {
  auto& member = members_[to];
  while (!member.down && member.in_flight < config_.window_chunks && !member.waiting.empty()) {
    auto next = member.waiting.front();
    member.waiting.pop_front();
    const auto& part = parts_[next.part];
    // It was reduced without us: on a slow line the rest of our slice would only delay what is
    // wanted. A reducer that works by part needs our whole slice, also where we hold finished
    // chunks.
    if (!next.reduced &&
        (by_part() ? part.missing == 0 : part.chunks[next.chunk].senders != nullptr))
      continue;
    if (acknowledges_) ++member.in_flight;
    const auto offset = part.grid.offset(next.chunk);
    if (!next.reduced) {
      tell(to, caf::make_message(part_chunk{
                   group_.group, self_, next.part, offset,
                   to_wire(giving(), next.part, next.chunk, own_slice(next.part, next.chunk))}));
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
  if (to.in_flight == 0 || message.part >= size_)
    return ban(message.member, "acknowledgement of nothing");
  --to.in_flight;
  if (!message.reduced)
    slice_arrived();
  else if (message.part == self_ && to.replies_unconfirmed > 0 && --to.replies_unconfirmed == 0)
    reply_arrived(message.member);
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
  if (acknowledges_)
    tell(message.sender, caf::make_message(chunk_received{group_.group, self_, message.part, 0}));
  auto& part = parts_[message.part];
  auto chunk = find_chunk(giving(), message.part, message.offset, message.data);
  if (!chunk || (part.reducing.empty() && !finished_))
    return ban(message.sender, "part chunk that does not fit its part");
  if (finished_ || !part.reduction) return; // too late
  auto values = from_wire(giving(), message.part, *chunk, message.data);
  if (!values) return ban(message.sender, "part chunk that the codec cannot read");
  if (part.reduction->add(message.sender, *chunk, std::move(*values), io_.time()) ==
      part_reduction::taken::wrong)
    return ban(message.sender, "part chunk that nobody asked for");
  reduce(message.part);
}

void butterfly::contribute(std::uint32_t p, const chunk_set& chunks) {
  if (request_.weight > 0)
    for (std::uint32_t k = 0; k < chunks.size(); ++k)
      if (chunks[k]) {
        auto values = own_slice(p, k);
        if (giving() && !giving()->drops_values())
          values =
              *from_wire(giving(), p, k, to_wire(giving(), p, k, values)); // as others get them
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
  if (finished_) return;
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
  if (!finished_ && hopeless_since_) fail_if_hopeless();
}

void butterfly::reduce(std::uint32_t p) {
  auto& part = parts_[p];
  // Holding the last chunk ends the reduction; so does the end of the round.
  while (part.reduction && !finished_) {
    auto next = part.reduction->next();
    if (!next) return;
    for (auto m : next->refused) {
      io_.suspect(group_.members[m].peer, "contribution with values that cannot be averaged");
      if (trouble_ == reason::none) trouble_ = reason::bad_message;
    }
    if (next->senders.empty())
      return fail(trouble_ == reason::none ? reason::sender_lost : trouble_);
    auto wire = to_wire(replying(), p, next->chunk, next->values);
    auto values = replying() ? *from_wire(replying(), p, next->chunk, wire) : payload{};
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
    const auto here = result_.slice(4 * first_value(p, number), part.grid.size(number));
    const auto& from = replying() ? values : chunk.wire;
    if (!from.same_memory(here)) {
      const auto floats = from.floats();
      std::copy(floats.begin(), floats.end(),
                result_.floats().begin() + static_cast<std::ptrdiff_t>(first_value(p, number)));
      if (!replying()) chunk.wire = here;
    }
  }
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
    if (takes(self_) || p == self_) --parts_missing_;
  }
  for (auto to : others_) {
    auto found = part.receivers.find(to);
    if (found == part.receivers.end() || found->second[number]) continue;
    found->second[number] = true;
    queue(to, {true, p, number});
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
      queue(to, {true, p, k});
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
    tell(from, caf::make_message(chunk_received{group_.group, self_, message.part, 1}));
  auto& part = parts_[message.part];
  auto chunk = find_chunk(replying(), message.part, message.offset, message.data);
  if (!chunk) return ban(from, "reduced chunk that does not fit its part");
  if (finished_ || part.chunks[*chunk].senders) return;
  auto fetched = part.fetched.find(*chunk);
  if (from != part.source && (fetched == part.fetched.end() || fetched->second != from))
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
  // The mean of finite values is finite; what is not would spoil the parameters for good.
  auto values = from_wire(replying(), message.part, *chunk, message.data);
  if (!values || (!values->is_size_only() && !kernels::all_finite(values->floats())))
    return ban(from, "reduced chunk with values that are not finite");
  if (!replying()) values = payload{};
  if (!acknowledges_ && std::binary_search(message.senders.begin(), message.senders.end(), self_))
    slice_arrived();
  hold(message.part, *chunk, message.data, *values, message.senders);
}

// -- the end --------------------------------------------------------------------------------------

std::vector<part_outcome> butterfly::outcomes() const {
  std::vector<part_outcome> out;
  for (std::uint32_t p = 0; p < size_; ++p) {
    const auto& part = parts_[p];
    const auto first = out.size();
    for (std::uint32_t k = 0; k < part.chunks.size(); ++k) {
      const auto& senders = *part.chunks[k].senders;
      const auto begin = group_.boundaries[p] + part.grid.offset(k) / 4;
      const auto end = begin + part.grid.size(k) / 4;
      if (out.size() > first && out.back().senders == senders) {
        out.back().end = end;
        continue;
      }
      std::uint64_t weight = 0;
      for (auto s : senders) weight += group_.members[s].weight;
      out.push_back({begin, end, senders, weight, p});
    }
  }
  return out;
}

id128 butterfly::version() const {
  hasher hash;
  for (const auto& part : outcomes()) {
    hash.add(part.begin).add(part.end);
    for (auto s : part.senders) hash.add(s);
  }
  return id128::from(hash.finish());
}

std::vector<std::pair<std::uint32_t, reason>> butterfly::lost_members() const {
  std::vector<std::pair<std::uint32_t, reason>> out;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (members_[m].down) out.emplace_back(m, members_[m].lost);
  return out;
}

std::uint32_t butterfly::majority() const {
  // Who declined never votes here, so that leaving it out keeps any two majorities from being
  // apart, even if only one of them knows that it declined.
  std::uint32_t voters = 0;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (takes(m) && members_[m].lost != reason::member_declined) ++voters;
  return config_.conduct->votes_needed(voters / 2 + 1);
}

void butterfly::vote_if_complete() {
  if (finished_ || voted_ || parts_missing_ > 0 || !takes(self_)) return;
  voted_ = members_[self_].vote = version();
  for (auto to : others_) tell(to, caf::make_message(member_ready{group_.group, self_, *voted_}));
  io_.probe(probes::voted);
  finish_if_decided();
}

void butterfly::on(const member_ready& message, const caf::strong_actor_ptr& sender) {
  // Also of who is down for us: a vote is a vote.
  if (!from_member(message.member, sender)) return io_.suspect(0, "vote by a stranger");
  if (!takes(message.member)) return ban(message.member, "vote by who takes no result");
  auto& vote = members_[message.member].vote;
  if (vote && *vote != message.version) return ban(message.member, "two votes in one round");
  vote = message.version;
  if (!acknowledges_) reply_arrived(message.member);
  finish_if_decided();
}

void butterfly::finish_if_decided() {
  if (finished_) return;
  if (!takes(self_)) return decided_ ? succeed() : fail_if_hopeless();
  if (!voted_) return;
  auto votes = std::count_if(members_.begin(), members_.end(),
                             [&](const member_state& m) { return m.vote == voted_; });
  if (decided_ == voted_ || votes >= majority()) return succeed();
  if (decided_) return fail(reason::no_majority); // the others have another version
  fail_if_hopeless();
}

void butterfly::succeed() {
  round_result result;
  result.outcome = outcome::ok;
  if (!takes(self_)) return finish(std::move(result), false);
  result.given = values_;
  result.values = values_.is_size_only() ? payload::size_only(values_.size())
                                         : result_.slice(0, values_.size());
  auto givers =
      static_cast<std::size_t>(std::count_if(group_.members.begin(), group_.members.end(),
                                             [](const member_info& m) { return m.weight > 0; }));
  auto lost = reason::sender_timeout;
  for (const auto& member : members_)
    if (member.down && !member.finished) lost = member.lost;
  result.parts = outcomes();
  for (const auto& part : result.parts)
    if (part.senders.size() < givers) {
      result.outcome = outcome::partial;
      if (trouble_ == reason::none) trouble_ = lost;
    }
  result.reason = result.outcome == outcome::ok ? reason::none : trouble_;
  io_.probe(probes::before_commit);
  finish(std::move(result), false);
}

void butterfly::fail(reason why) {
  if (finished_) return;
  round_result result;
  result.outcome = outcome::failed;
  result.reason = why;
  finish(std::move(result), true);
}

void butterfly::finish(round_result result, bool failed) {
  finished_ = true;
  result.group = group_.group;
  result.epoch = group_.epoch;
  result.member = self_;
  result.members = group_.members;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (members_[m].lost == reason::member_declined) result.declined.push_back(m);
  result.started = started_;
  result.part_times = part_times_;
  result.line_times = line_times();
  if (failed) {
    for (auto& part : parts_) part.reduction.reset();
    for (auto& member : members_) member.waiting.clear();
  }
  const auto version = voted_.value_or(id128{});
  for (auto to : others_)
    tell(to, caf::make_message(member_finished{
                 group_.group, self_, failed ? std::uint8_t{1} : std::uint8_t{0}, version}));
  done_(std::move(result));
}

/// As kernels/averaging_plan.hpp has it, in bytes as the codecs write them.
std::vector<duration> butterfly::line_times() const {
  const auto wire_bytes = [this](const codec_ptr& codec, std::uint32_t p) {
    const auto count = group_.boundaries[p + 1] - group_.boundaries[p];
    return static_cast<double>(codec ? codec->bytes(group_.boundaries[p], count) : 4 * count);
  };
  std::vector<double> slices, means;
  double all_slices = 0, all_means = 0, senders = 0, receivers = 0;
  for (std::uint32_t p = 0; p < size_; ++p) {
    all_slices += slices.emplace_back(wire_bytes(giving(), p));
    all_means += means.emplace_back(wire_bytes(replying(), p));
    senders += group_.members[p].weight > 0 ? 1 : 0;
    receivers += takes(p) ? 1 : 0;
  }
  std::vector<duration> out(size_);
  for (std::uint32_t p = 0; p < size_; ++p) {
    if (parts_[p].grid.count() == 0) continue;
    const auto& who = group_.members[p];
    const double sends = who.weight > 0 ? 1 : 0, receives = takes(p) ? 1 : 0;
    const auto up = sends * (all_slices - slices[p]) + (receivers - receives) * means[p];
    const auto down = (senders - sends) * slices[p] + receives * (all_means - means[p]);
    const auto seconds = [](double bytes, std::uint64_t rate) {
      return 8 * bytes / static_cast<double>(std::max<std::uint64_t>(rate, 1));
    };
    const auto longest = std::max(seconds(up, who.rate_up), seconds(down, who.rate_down));
    out[p] = from_seconds(std::min(longest, to_seconds(config_.round_timeout)));
  }
  return out;
}

void butterfly::on_round_timeout() {
  fail(reason::reducer_timeout);
}

void butterfly::on(const member_finished& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "farewell by a stranger")) return;
  auto& member = members_[message.member];
  if (member.finished && !apart(message.member)) return;
  member.finished = true;
  // Its round is over, and it goes its own way: nobody is to wait for it.
  if (message.failed) return lose_and_go_on(message.member, reason::sender_lost);
  decided_ = message.version;
  finish_if_decided();
}

bool butterfly::idle() const {
  return finished_ && std::all_of(members_.begin(), members_.end(), [this](const member_state& m) {
           return &m == &members_[self_] || m.down || m.finished;
         });
}

} // namespace shoal::actors
