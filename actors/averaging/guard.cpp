// Commitments, and the values behind them. The steps are in guard.hpp; the steps after the result
// are in guard_checks.cpp and guard_cases.cpp.
#include "actors/averaging/guard.hpp"

#include "actors/averaging/guard_observations.hpp"
#include "actors/averaging/guard_statements.hpp"
#include "actors/data/sample_ranges.hpp"
#include "kernels/base/check.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

constexpr std::size_t most_ranges = 4096;

std::uint32_t size_of(const group_begun& group) {
  return static_cast<std::uint32_t>(group.members.size());
}

} // namespace

// -- set-up ---------------------------------------------------------------------------------------

round_guard::round_guard(const averaging_config& config, const round_request& request,
                         group_begun group, std::uint32_t self, payload contribution,
                         const key256& secret, round_io& io, guard_io& effects)
    : config_(config), request_(request), group_(std::move(group)), self_(self),
      contribution_(std::move(contribution)), secret_(secret), io_(io), effects_(effects),
      layout_(group_.boundaries, group_.chunk_bytes, contribution_.is_size_only()),
      members_(group_.members.size()), beacon_(group_.group, size_of(group_)) {
  SHOAL_CHECK(config_.guard != nullptr, "a guard needs its options");
}

bool round_guard::from_member(std::uint32_t m, const caf::strong_actor_ptr& sender) const {
  return m < size() && m != self_ && sender &&
         caf::actor_cast<caf::strong_actor_ptr>(group_.members[m].address) == sender;
}

bool round_guard::listen_to(std::uint32_t m, const caf::strong_actor_ptr& sender,
                            const char* what) {
  if (!from_member(m, sender)) {
    io_.suspect(io_.peer_of(sender), what);
    return false;
  }
  return !members_[m].condemned;
}

bool round_guard::by_some_member(const caf::strong_actor_ptr& sender, const char* what) {
  for (std::uint32_t m = 0; m < size(); ++m)
    if (from_member(m, sender)) return true;
  io_.suspect(io_.peer_of(sender), what);
  return false;
}

bool round_guard::apart(std::uint32_t m) const {
  return m != self_ && group_.members[self_].reached == 0 && group_.members[m].reached == 0;
}

bool round_guard::is_signed(std::uint32_t m, const digest& statement, const signature& by) const {
  return io_.is_signed_by(group_.members[m].key, statement, by);
}

void round_guard::tell(std::uint32_t m, caf::message content) {
  if (m != self_ && !members_[m].gone && !apart(m))
    io_.send_to(group_.members[m].address, std::move(content));
}

// -- commitments ----------------------------------------------------------------------------------

payload round_guard::own_wire(std::uint32_t part, std::uint32_t chunk) const {
  return layout_.to_wire(request_.codecs.contributions, part, chunk,
                         layout_.slice(contribution_, part, chunk));
}

void round_guard::start() {
  started_ = io_.time();
  commit();
  effects_.wake_in(config_.guard->commit_time);
  open_if_ready(false);
}

void round_guard::commit() {
  round_commitment mine;
  mine.group = group_.group;
  mine.member = self_;
  mine.secret = hidden(group_.group, self_, secret_);
  if (request_.weight > 0) {
    mine.blocks = request_.blocks.empty() ? request_.samples : request_.blocks;
    falsified_ = size_only() && config_.conduct->falsifies_sizes();
    own_hashes_.resize(size());
    for (std::uint32_t p = 0; p < size(); ++p) {
      for (std::uint32_t k = 0; k < layout_.grid(p).count(); ++k)
        own_hashes_[p].push_back(hash_of_chunk(own_wire(p, k), falsified_));
      mine.parts.push_back(hash_of_chunks(own_hashes_[p]));
    }
  }
  const auto content = content_of(mine);
  mine.by = io_.sign(commitment_statement(mine));
  for (std::uint32_t to = 0; to < size(); ++to) {
    if (to == self_) continue;
    auto one = mine;
    config_.conduct->commit(one, to);
    if (content_of(one) != content) one.by = io_.sign(commitment_statement(one));
    tell(to, caf::make_message(std::move(one)));
  }
  beacon_.commit(self_, mine.secret);
  beacon_.reveal(self_, secret_);
  members_[self_].content = content;
  members_[self_].commitment = std::move(mine);
  effects_.observe(committed{group_.group, group_.epoch, self_});
}

/// The first thing that is wrong with a signed commitment.
const char* round_guard::fault_of(const round_commitment& what) const {
  const auto& who = group_.members[what.member];
  if (!is_signed(what.member, commitment_statement(what), what.by))
    return "commitment without a signature";
  if (what.parts.size() != (who.weight > 0 ? size() : 0))
    return "commitment to other parts than the group has";
  if (who.weight == 0) return what.blocks.empty() ? nullptr : "commitment to samples of no weight";
  const auto blocks = checked_ranges(what.blocks, most_ranges);
  const auto samples = checked_ranges(who.samples, most_ranges);
  if (!blocks || !samples || *blocks != *samples)
    return "commitment to other samples than the group knows";
  if (index_count(*blocks) != who.weight) return "commitment to fewer samples than the weight";
  return nullptr;
}

/// Takes a signed commitment, from its member or from another. False if nothing came of it.
bool round_guard::take(const round_commitment& what) {
  auto& member = members_[what.member];
  if (!member.commitment) {
    member.commitment = what;
    member.content = content_of(what);
    beacon_.commit(what.member, what.secret);
    return true;
  }
  const auto second = content_of(what);
  if (*member.content == second) return true;
  prove(statement_kind::commitment, what.member, group_.group, *member.content,
        member.commitment->by, second, what.by);
  return false;
}

void round_guard::on(const round_commitment& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "commitment by a stranger")) return;
  if (const char* wrong = fault_of(message)) {
    members_[message.member].gone = true;
    effects_.leave_out(message.member, wrong);
    return open_if_ready(false);
  }
  // After the barrier the others know it without us.
  take(message);
  open_if_ready(false);
}

bool round_guard::waits_for_commitments() const {
  for (std::uint32_t m = 0; m < size(); ++m) {
    const auto& member = members_[m];
    if (!member.commitment && !member.gone && !member.condemned && !apart(m)) return true;
  }
  return false;
}

void round_guard::open_if_ready(bool time_is_up) {
  if (open_ || over_ || (!time_is_up && waits_for_commitments())) return;
  open_ = true;
  std::vector<std::uint32_t> without;
  for (std::uint32_t m = 0; m < size(); ++m)
    if (!members_[m].commitment || members_[m].condemned) without.push_back(m);
  tell_all(commitments_seen{group_.group, self_, own_echo()});
  for (std::uint32_t m = 0; m < size(); ++m) compare_echo(m);
  effects_.values_may_leave(without);
}

void round_guard::on(const commitments_seen& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "echo by a stranger")) return;
  members_[message.member].seen = message.all;
  if (open_) compare_echo(message.member);
}

id128 round_guard::own_echo() const {
  std::vector<std::optional<id128>> contents;
  for (const auto& each : members_) contents.push_back(each.content);
  return hash_of_commitments(contents);
}

void round_guard::compare_echo(std::uint32_t m) {
  auto& member = members_[m];
  if (!member.seen || member.given || m == self_ || own_echo() == *member.seen) return;
  // Once: a member that could ask again and again would have our line for itself.
  member.given = true;
  commitments_given out{group_.group, self_, {}};
  for (const auto& each : members_)
    if (each.commitment) out.all.push_back(*each.commitment);
  tell(m, caf::make_message(std::move(out)));
}

void round_guard::on(const commitments_given& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "commitments by a stranger")) return;
  if (message.all.size() > size())
    return io_.suspect(group_.members[message.member].peer, "more commitments than members");
  for (const auto& each : message.all) {
    if (each.group != group_.group || each.member >= size() || fault_of(each) != nullptr)
      return io_.suspect(group_.members[message.member].peer, "commitment that nobody made");
    // Two different ones of ours would be our own contradiction, which nobody but us can make.
    if (each.member != self_) take(each);
  }
  open_if_ready(false);
}

void round_guard::prove(statement_kind kind, std::uint32_t m, const id128& subject,
                        const id128& first, const signature& first_by, const id128& second,
                        const signature& second_by) {
  if (std::exchange(members_[m].condemned, true)) return;
  const evidence proof{static_cast<std::uint8_t>(kind),
                       group_.members[m].key,
                       subject,
                       first,
                       second,
                       first_by,
                       second_by};
  effects_.observe(contradiction_found{group_.group, m, group_.members[m].peer, meaning(proof)});
  effects_.convict(proof, m);
}

// -- values ---------------------------------------------------------------------------------------

void round_guard::send_hashes(std::uint32_t part, std::uint32_t to) {
  if (request_.weight == 0) return;
  tell(to, caf::make_message(chunk_hashes{group_.group, self_, part, own_hashes_[part]}));
}

void round_guard::on(const chunk_hashes& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "hashes by a stranger")) return;
  auto& member = members_[message.member];
  // The commitment came over the same connection before, or never will.
  if (!member.commitment) return;
  const char* wrong = nullptr;
  if (message.part >= size() || message.chunks.size() != layout_.grid(message.part).count())
    wrong = "hashes of chunks that there are not";
  else if (member.commitment->parts.empty() ||
           hash_of_chunks(message.chunks) != member.commitment->parts[message.part])
    wrong = "hashes that the member has not committed to";
  if (wrong != nullptr) return effects_.leave_out(message.member, wrong);
  member.hashes.emplace(message.part, message.chunks);
}

round_guard::fit round_guard::fits(std::uint32_t m, std::uint32_t part, std::uint32_t chunk,
                                   const payload& wire) const {
  const auto& hashes = members_[m].hashes;
  const auto found = hashes.find(part);
  if (found == hashes.end()) return fit::unknown;
  // Values without bits have nothing to hash: an audit compares what their member committed to.
  if (wire.is_size_only()) return fit::right;
  return hash_of_chunk(wire) == found->second[chunk] ? fit::right : fit::wrong;
}

void round_guard::keep(std::uint32_t m, std::uint32_t part, std::uint32_t chunk, payload wire) {
  auto& all = kept_[{part, m}];
  all.resize(layout_.grid(part).count());
  all[chunk] = std::move(wire);
}

void round_guard::seal(std::uint32_t part, std::span<const id128> versions) {
  part_sealed mine{group_.group, self_, part, root_of_part(versions), {}};
  mine.by = io_.sign(part_statement(mine));
  seals_[part].push_back(mine);
  tell_all(mine);
}

void round_guard::on(const part_sealed& message, const caf::strong_actor_ptr& sender) {
  // Another member may pass it on.
  if (!by_some_member(sender, "result of a part by a stranger")) return;
  if (message.member >= size() || message.part >= size() ||
      !is_signed(message.member, part_statement(message), message.by))
    return io_.suspect(io_.peer_of(sender), "result of a part without a signature");
  auto& all = seals_[message.part];
  for (const auto& each : all) {
    if (each.member != message.member) continue;
    if (each.root != message.root && message.member != self_)
      prove(statement_kind::part, message.member, part_subject(group_.group, message.part),
            each.root, each.by, message.root, message.by);
    return;
  }
  all.push_back(message);
}

void round_guard::disagrees(std::uint32_t m) {
  if (std::exchange(members_[m].sealed_given, true)) return;
  for (const auto& [part, all] : seals_)
    for (const auto& each : all) tell(m, caf::make_message(each));
}

void round_guard::on_down(const caf::actor_addr& whom) {
  for (std::uint32_t m = 0; m < size(); ++m)
    if (m != self_ && caf::actor_cast<caf::actor_addr>(group_.members[m].address) == whom) {
      members_[m].gone = true;
      // A member that does not wait for all secrets ends before us.
      members_[m].stayed = settled() && io_.time() - *settled_at_ >= config_.guard->duty_time / 2;
    }
  open_if_ready(false);
  if (ended_ && !failed_ && !settled() && beacon_complete()) settle_random();
  end_if_done();
}

void round_guard::tick() {
  if (over_) return;
  const auto now = io_.time();
  const auto duty = config_.guard->duty_time;
  if (!open_ && now - started_ >= config_.guard->commit_time) open_if_ready(true);
  if (!ended_) return;
  if (failed_) return end_if_done();
  if (!settled() && now - *ended_ >= duty / 4) settle_random();
  if (settled() && now - *settled_at_ >= duty / 4) watch_farthest();
  if (settled() && !duties_over_ && now - *settled_at_ >= duty) end_duties();
  end_cases();
  begin_cases();
  end_if_done();
}

} // namespace shoal::actors
