// Accusations, juries and verdicts. The steps are in guard.hpp.
#include "actors/averaging/guard.hpp"
#include "actors/averaging/guard_observations.hpp"
#include "actors/averaging/guard_statements.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

constexpr std::size_t most_waiting = 64; // messages about a case that is not known yet

case_kind kind_of(const accusation& what) {
  return static_cast<case_kind>(what.kind);
}

} // namespace

// -- accusations ----------------------------------------------------------------------------------

void round_guard::accuse(case_kind kind, std::uint32_t accused, std::uint32_t part) {
  if (members_[accused].condemned) return;
  accusation mine{group_.group, self_, accused, static_cast<std::uint8_t>(kind), part, {}};
  mine.by = io_.sign(accusation_statement(mine));
  // A member may have told others other products: then they have the proof at once.
  for (std::uint32_t m = 0; m < size() && kind != case_kind::gradient; ++m)
    if (members_[m].checks && (kind != case_kind::product || m == accused))
      tell_all(*members_[m].checks);
  tell_all(mine);
  const auto id = case_of(group_.group, kind, self_, accused, part);
  effects_.observe(accused_member{group_.group, id, mine.kind, self_, accused, part,
                                  group_.members[self_].peer, group_.members[accused].peer});
  charge(mine);
}

void round_guard::on(const accusation& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "accusation by a stranger")) return;
  const auto peer = group_.members[message.member].peer;
  if (message.kind > static_cast<std::uint8_t>(case_kind::distance) || message.accused >= size() ||
      message.accused == message.member || message.part >= size())
    return io_.suspect(peer, "accusation that makes no sense");
  if (!is_signed(message.member, accusation_statement(message), message.by))
    return io_.suspect(peer, "accusation without a signature");
  charge(message);
}

void round_guard::charge(const accusation& what) {
  if (kind_of(what) == case_kind::gradient) note_audit(what.member, what.accused);
  const auto id = case_of(group_.group, kind_of(what), what.member, what.accused, what.part);
  auto* one = case_named(id);
  if (one == nullptr || one->charge) return;
  one->charge = what;
  begin_cases();
}

/// Null if there are too many.
round_guard::case_state* round_guard::case_named(const id128& id) {
  const auto found = cases_.find(id);
  if (found != cases_.end()) return &found->second;
  if (cases_.size() >= 4 * size() + most_waiting) return nullptr;
  return &cases_[id];
}

/// Begins the cases that can begin: one at a time of each accuser, because the first false one is
/// its last.
void round_guard::begin_cases() {
  if (!settled() || over_) return;
  accuse_in_turn();
  for (auto& entry : cases_) {
    auto& one = entry.second;
    if (!one.charge || one.over) continue;
    if (members_[one.charge->member].condemned || members_[one.charge->accused].condemned) {
      one.over = true;
      continue;
    }
    if (one.begun) continue;
    const bool busy = std::any_of(cases_.begin(), cases_.end(), [&](const auto& each) {
      const auto& other = each.second;
      return other.begun && !other.over && other.charge->member == one.charge->member;
    });
    if (!busy) begin(entry.first, one);
  }
}

void round_guard::begin(const id128& id, case_state& one) {
  one.begun = true;
  one.since = io_.time();
  const auto duty = config_.guard->duty_time;
  effects_.wake_in(duty / 4);
  effects_.wake_in(2 * duty);
  for (const auto& each : std::exchange(one.wanted, {})) give(each, one);
  for (const auto& each : std::exchange(one.early, {})) take_vote(id, one, each);
  judge(id, one);
}

// -- openings -------------------------------------------------------------------------------------

const round_guard::wires* round_guard::opened(std::uint32_t of, std::uint32_t part) const {
  for (const auto* all : {&kept_, &opened_}) {
    const auto found = all->find({part, of});
    if (found != all->end() && has_all(found->second, part, of)) return &found->second;
  }
  return nullptr;
}

void round_guard::ask_for(const id128& id, std::uint32_t whom, std::uint32_t of,
                          std::uint32_t part) {
  if (whom == self_ || !asked_.insert({whom, of, part}).second) return;
  tell(whom, caf::make_message(opening_wanted{group_.group, self_, id, of, part}));
}

void round_guard::on(const opening_wanted& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "request for values by a stranger")) return;
  if (message.of >= size() || message.part >= size())
    return io_.suspect(group_.members[message.member].peer, "request that makes no sense");
  auto* one = case_named(message.case_id);
  if (one == nullptr) return;
  if (one->charge)
    give(message, *one);
  else if (one->wanted.size() < most_waiting)
    one->wanted.push_back(message);
}

/// Gives a member our values of a part, or those that we have reduced, if a case is about them.
void round_guard::give(const opening_wanted& what, const case_state& about) {
  if (about.charge->part != what.part || kind_of(*about.charge) == case_kind::gradient ||
      !config_.conduct->opens() || size_only())
    return;
  const auto kept = kept_.find({what.part, what.of});
  if (what.of == self_ ? request_.weight == 0 : kept == kept_.end()) return;
  // Once: a member that could ask again and again would have our line for itself.
  if (!given_.insert({what.member, what.of, what.part}).second) return;
  for (std::uint32_t k = 0; k < layout_.grid(what.part).count(); ++k) {
    const auto wire = what.of == self_ ? own_wire(what.part, k) : kept->second[k];
    if (!wire.empty())
      tell(what.member,
           caf::make_message(opening{group_.group, self_, what.of, what.part, k, wire}));
  }
}

void round_guard::on(const opening& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "values by a stranger")) return;
  const auto peer = group_.members[message.member].peer;
  if (!asked_.contains({message.member, message.of, message.part}) ||
      message.chunk >= layout_.grid(message.part).count())
    return io_.suspect(peer, "values that nobody asked for");
  if (over_ || opened(message.of, message.part) != nullptr) return;
  const auto& commitment = members_[message.of].commitment;
  const auto count = layout_.grid(message.part).count();
  auto& all = arriving_[{message.member, message.of, message.part}];
  all.resize(count);
  const auto offset = layout_.grid(message.part).offset(message.chunk);
  if (!commitment || commitment->parts.empty() ||
      layout_.find_chunk(request_.codecs.contributions, message.part, offset, message.data) !=
          message.chunk ||
      !layout_.from_wire(request_.codecs.contributions, message.part, message.chunk, message.data))
    return io_.suspect(peer, "values that are not those of the part");
  all[message.chunk] = message.data;
  if (std::any_of(all.begin(), all.end(), [](const payload& each) { return each.empty(); })) return;
  std::vector<id128> hashes;
  for (const auto& each : all) hashes.push_back(hash_of_chunk(each));
  if (hash_of_chunks(hashes) != commitment->parts[message.part])
    return io_.suspect(peer, "values that their member has not committed to");
  opened_.insert_or_assign({message.part, message.of}, std::move(all));
  for (auto& [id, one] : cases_) judge(id, one);
  end_if_done();
}

// -- juries ---------------------------------------------------------------------------------------

std::vector<std::uint32_t> round_guard::jurors_of(const id128& id, const case_state& one) const {
  return draw_jurors(*random_, id, size(), one.charge->member, one.charge->accused,
                     config_.guard->jurors);
}

/// Decides a case as a juror, or asks for what that takes.
void round_guard::judge(const id128& id, case_state& one) {
  if (!one.begun || one.over || one.voted || !config_.conduct->validates()) return;
  const auto jurors = jurors_of(id, one);
  if (!std::binary_search(jurors.begin(), jurors.end(), self_)) return;
  switch (kind_of(*one.charge)) {
  case case_kind::gradient:
    return judge_gradient(id, one);
  case case_kind::product:
    return judge_product(id, one);
  case case_kind::aggregate:
  case case_kind::distance:
    return judge_part(id, one);
  case case_kind::poisoned:
    return;
  }
}

void round_guard::judge_gradient(const id128& id, case_state& one) {
  const auto [accuser, accused] = std::pair{one.charge->member, one.charge->accused};
  const auto found = recomputed_.find(accused);
  if (found == recomputed_.end()) return want(accused);
  if (!found->second) return;
  const bool right =
      config_.conduct->finds_right(group_.members[accused], *found->second == finding::right);
  vote(id, one, right ? accuser : accused);
}

void round_guard::judge_product(const id128& id, case_state& one) {
  const auto [accuser, accused] = std::pair{one.charge->member, one.charge->accused};
  const auto part = one.charge->part;
  // The accuser can know what a correct one never accuses anybody of.
  if (size_only() || senders_[part].empty() || !members_[accused].contributes)
    return vote(id, one, accuser);
  if (!members_[accused].checks) return;
  const auto* values = opened(accused, part);
  if (values == nullptr) {
    ask_for(id, accuser, accused, part);
    if (io_.time() - one.since >= config_.guard->duty_time / 4) ask_for(id, accused, accused, part);
    return;
  }
  vote(id, one,
       same_product(said(accused, part), product_of(make_products(part), accused, part, *values))
           ? accuser
           : accused);
}

void round_guard::judge_part(const id128& id, case_state& one) {
  const auto [accuser, accused] = std::pair{one.charge->member, one.charge->accused};
  const auto part = one.charge->part;
  if (size_only() || senders_[part].empty()) return vote(id, one, accuser);
  // Another member had a share in the part, as we saw the round.
  if (reducers_[part] != accused || !products_.contains(part)) return;
  const auto products = make_products(part);
  std::map<std::uint32_t, wires> values;
  bool complete = true;
  for (const auto m : products.senders()) {
    if (m == self_) {
      auto& own = values[m];
      for (std::uint32_t k = 0; k < layout_.grid(part).count(); ++k)
        own.push_back(own_wire(part, k));
      continue;
    }
    if (const auto* others = opened(m, part)) {
      values.emplace(m, *others);
      continue;
    }
    complete = false;
    ask_for(id, m, m, part);
    if (io_.time() - one.since >= config_.guard->duty_time / 4) ask_for(id, accused, m, part);
  }
  if (!complete) return;
  std::map<std::uint32_t, part_product> found;
  for (const auto& [m, chunks] : values) found.emplace(m, product_of(products, m, part, chunks));
  if (sum_of(part, found) == sum::wrong) {
    // An honest reducer's iterations may end before the fixed point. Then nobody has lied.
    if (!is_aggregate(part, values)) vote(id, one, accused);
    return;
  }
  // The accuser sent us all signed products. If they make zero, it has no reason.
  const auto each = all_said(part);
  if (each && sum_of(part, *each) == sum::right && !is_far(*each)) vote(id, one, accuser);
}

/// Whether the part's result is what its aggregator makes of these values. The members may have
/// other processors, so a difference of a millionth is none.
bool round_guard::is_aggregate(std::uint32_t part,
                               const std::map<std::uint32_t, wires>& values) const {
  auto how = config_;
  how.conduct = honest_conduct();
  std::vector<std::uint64_t> weights;
  for (const auto& who : group_.members) weights.push_back(who.weight);
  const auto grid = layout_.grid(part);
  part_reduction again(grid, weights, false, how, io_.time(), {}, 0,
                       {group_.boundaries.back(), group_.group});
  again.open(chunk_set(grid.count(), true), io_.time());
  for (const auto& [m, chunks] : values)
    for (std::uint32_t k = 0; k < grid.count(); ++k) {
      const auto& list = senders_[part][k];
      if (std::binary_search(list.begin(), list.end(), m))
        again.add(m, k, decoded(part, k, chunks[k]), io_.time());
    }
  for (std::uint32_t m = 0; m < size(); ++m) again.leave_out(m);
  double difference = 0, length = 0;
  std::uint32_t done = 0;
  while (const auto next = again.next()) {
    if (next->senders.empty()) return false;
    const auto said = layout_.slice(result_, part, next->chunk);
    const auto a = said.floats(), b = next->values.floats();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
      difference += d * d;
      length += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    ++done;
  }
  return done == grid.count() && difference <= 1e-12 * length + 1e-80;
}

part_product round_guard::product_of(const part_products& by, std::uint32_t m, std::uint32_t part,
                                     const wires& values) const {
  return by.of(m, group_.members[m].weight,
               [&](std::uint32_t k) { return decoded(part, k, values[k]); });
}

// -- votes and verdicts ---------------------------------------------------------------------------

digest round_guard::statement_against(std::uint32_t culprit, const id128& id,
                                      std::uint8_t kind) const {
  return verdict_statement(group_.group, id, kind, size(), group_.members[culprit].key);
}

void round_guard::vote(const id128& id, case_state& one, std::uint32_t culprit) {
  if (culprit == self_ || std::exchange(one.voted, true)) return;
  juror_vote mine{group_.group, self_, id, culprit, {}};
  mine.by = io_.sign(statement_against(culprit, id, one.charge->kind));
  tell_all(mine);
  take_vote(id, one, mine);
}

void round_guard::on(const juror_vote& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "juror's vote by a stranger")) return;
  auto* one = case_named(message.case_id);
  if (one == nullptr || one->over) return;
  if (one->begun)
    take_vote(message.case_id, *one, message);
  else if (one->early.size() < most_waiting + size())
    one->early.push_back(message);
}

void round_guard::take_vote(const id128& id, case_state& one, const juror_vote& what) {
  const auto& charge = *one.charge;
  if ((what.culprit != charge.member && what.culprit != charge.accused) ||
      what.member == what.culprit ||
      !is_signed(what.member, statement_against(what.culprit, id, charge.kind), what.by))
    return io_.suspect(group_.members[what.member].peer, "juror's vote without a signature");
  auto& of_accuser = one.for_accuser;
  auto& of_accused = one.for_accused;
  if (of_accuser.contains(what.member) || of_accused.contains(what.member)) return;
  (what.culprit == charge.member ? of_accuser : of_accused).emplace(what.member, what.by);
  conclude(id, one);
}

void round_guard::conclude(const id128& id, case_state& one) {
  if (one.over) return;
  const auto jurors = jurors_of(id, one);
  for (const auto& [culprit, votes] : {std::pair{one.charge->member, &one.for_accuser},
                                       std::pair{one.charge->accused, &one.for_accused}}) {
    const auto by_jurors = static_cast<std::size_t>(std::count_if(
        jurors.begin(), jurors.end(), [&, v = votes](std::uint32_t m) { return v->contains(m); }));
    const bool juror = std::binary_search(jurors.begin(), jurors.end(), self_);
    // A vote of our own concludes the case again.
    if (!juror && !one.voted && culprit != self_ && 2 * by_jurors > jurors.size())
      return vote(id, one, culprit);
    if (votes->size() < signatures_needed(size())) continue;
    one.over = true;
    verdict out;
    out.group = group_.group;
    out.members = size();
    out.case_id = id;
    out.kind = one.charge->kind;
    out.accuser = one.charge->member;
    out.accused = one.charge->accused;
    out.part = one.charge->part;
    out.culprit = group_.members[culprit].key;
    for (const auto& [member, by] : *votes) out.by.push_back({group_.members[member].key, by});
    std::sort(out.by.begin(), out.by.end(),
              [](const actors::judge& a, const actors::judge& b) { return a.key < b.key; });
    members_[culprit].condemned = true;
    effects_.observe(case_decided{group_.group, id, out.kind, out.accuser, out.accused, culprit,
                                  group_.members[culprit].peer,
                                  static_cast<std::uint32_t>(out.by.size())});
    effects_.convict(out, culprit);
    return begin_cases();
  }
}

void round_guard::end_cases() {
  const auto now = io_.time();
  for (auto& [id, one] : cases_) {
    if (!one.begun || one.over) continue;
    judge(id, one); // the time to ask the other side may have come
    if (!one.over && now - one.since >= 2 * config_.guard->duty_time) one.over = true;
  }
}

void round_guard::end_if_done() {
  if (over_ || !ended_) return;
  const bool alone = std::all_of(members_.begin(), members_.end(), [this](const member_state& m) {
    return &m == &members_[self_] || m.gone;
  });
  const bool late = failed_ ? io_.time() - *ended_ >= config_.guard->duty_time : duties_over_;
  const bool open = std::any_of(cases_.begin(), cases_.end(), [](const auto& entry) {
    return entry.second.charge && !entry.second.over;
  });
  if (!alone && (!late || ((open || !to_accuse_.empty()) && !failed_))) return;
  over_ = true;
  for (auto* all : {&kept_, &opened_}) all->clear();
  arriving_.clear();
  products_.clear();
  result_ = {};
}

} // namespace shoal::actors
