// The steps after the result: random number, scalar products, audits. All steps are in guard.hpp.
#include "actors/averaging/guard.hpp"
#include "actors/averaging/guard_observations.hpp"
#include "actors/averaging/guard_statements.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace shoal::actors {

namespace {

constexpr std::size_t most_early_checks = 4; // a member's

} // namespace

// -- the end of the round -------------------------------------------------------------------------

void round_guard::ended(const round_result& result, std::vector<std::uint32_t> reducers) {
  ended_ = io_.time();
  reducers_ = std::move(reducers);
  failed_ = !result.succeeded() || !request_.takes;
  if (!members_[self_].commitment) { // the round failed before it began
    over_ = true;
    return;
  }
  if (!failed_) {
    result_ = result.values;
    senders_.resize(size());
    for (std::uint32_t p = 0; p < size(); ++p) senders_[p].resize(layout_.grid(p).count());
    for (const auto& stretch : result.parts) {
      for (const auto m : stretch.senders) members_[m].contributes = true;
      auto& chunks = senders_[stretch.part];
      for (std::uint32_t k = 0; k < chunks.size(); ++k) {
        const auto first = layout_.first_value(stretch.part, k);
        if (stretch.begin <= first && first < stretch.end) chunks[k] = stretch.senders;
      }
    }
  }
  reveal();
  const auto duty = config_.guard->duty_time;
  effects_.wake_in(failed_ ? duty : duty / 4);
  if (!failed_ && beacon_complete()) settle_random();
}

// -- the random number ----------------------------------------------------------------------------

void round_guard::reveal() {
  if (config_.conduct->reveals()) tell_all(secret_revealed{group_.group, self_, secret_});
}

bool round_guard::beacon_complete() const {
  const auto missing = beacon_.missing();
  return std::all_of(missing.begin(), missing.end(), [this](std::uint32_t m) {
    return members_[m].gone || members_[m].condemned || apart(m);
  });
}

void round_guard::on(const secret_revealed& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "secret by a stranger")) return;
  auto& member = members_[message.member];
  if (!member.commitment) return;
  if (hidden(group_.group, message.member, message.secret) != member.commitment->secret)
    return io_.suspect(group_.members[message.member].peer,
                       "secret that the member has not committed to");
  member.secret = message.secret;
  // A later secret would change the number that is drawn from.
  if (settled()) return;
  beacon_.reveal(message.member, message.secret);
  if (ended_ && !failed_ && beacon_complete()) settle_random();
}

digest round_guard::number_without_own() const {
  beacon others(group_.group, size());
  for (std::uint32_t m = 0; m < size(); ++m) {
    const auto& member = members_[m];
    if (m == self_ || !member.secret) continue;
    others.commit(m, member.commitment->secret);
    others.reveal(m, *member.secret);
  }
  return others.value();
}

/// The number of all secrets, unless more members have checked with the one that lacks ours.
void round_guard::choose_number() {
  const auto all = beacon_.value(), others = number_without_own();
  const auto users = [&](const digest& number) {
    std::size_t out = 0;
    for (const auto& member : members_)
      for (const auto& each : member.early_checks)
        out += each.random == id128::from(number) ? 1 : 0;
    return out;
  };
  random_ = users(others) > users(all) ? others : all;
  random_id_ = id128::from(*random_);
}

void round_guard::settle_random() {
  choose_number();
  settled_at_ = io_.time();
  const auto duty = config_.guard->duty_time;
  effects_.wake_in(duty / 4);
  effects_.wake_in(duty);
  send_checks();
  for (auto& member : members_)
    for (const auto& each : std::exchange(member.early_checks, {})) take_checks(each);
  plan();
  if (const auto whom = config_.conduct->accuses(group_.members);
      whom && *whom < size() && *whom != self_)
    accuse(case_kind::gradient, *whom, 0);
  begin_cases();
}

// -- scalar products ------------------------------------------------------------------------------

part_products round_guard::make_products(std::uint32_t part) const {
  return {layout_, part,           *random_,
          result_, senders_[part], clipping_of(config_, group_.boundaries.back())};
}

payload round_guard::decoded(std::uint32_t part, std::uint32_t chunk, const payload& wire) const {
  return *layout_.from_wire(request_.codecs.contributions, part, chunk, wire);
}

void round_guard::send_checks() {
  part_checks mine{group_.group, self_, random_id_, {}, {}, {}};
  const auto weight = group_.members[self_].weight;
  for (std::uint32_t p = 0; p < size(); ++p) {
    part_product own;
    if (!size_only() && !senders_[p].empty()) {
      auto& by = products_.emplace(p, make_products(p)).first->second;
      // As the codec leaves the values.
      if (members_[self_].contributes)
        own = by.of(self_, weight, [&](std::uint32_t k) { return decoded(p, k, own_wire(p, k)); });
      by.forget_direction();
    }
    mine.products.push_back(std::bit_cast<std::uint64_t>(own.product));
    mine.norms.push_back(std::bit_cast<std::uint64_t>(own.norm));
  }
  config_.conduct->check_parts(mine);
  mine.by = io_.sign(checks_statement(mine));
  members_[self_].checks = mine;
  tell_all(mine);
}

void round_guard::on(const part_checks& message, const caf::strong_actor_ptr& sender) {
  // Another member may pass it on.
  if (!by_some_member(sender, "checks by a stranger")) return;
  if (message.member == self_) return;
  if (message.member >= size() || message.products.size() != size() ||
      message.norms.size() != size() ||
      !is_signed(message.member, checks_statement(message), message.by))
    return io_.suspect(io_.peer_of(sender), "checks without a signature");
  if (failed_) return;
  if (settled()) return take_checks(message);
  auto& early = members_[message.member].early_checks;
  if (early.size() < most_early_checks) early.push_back(message);
}

void round_guard::take_checks(const part_checks& what) {
  auto& member = members_[what.member];
  member.has_checked = true;
  // Products of another random number cannot be compared.
  if (what.random != random_id_) return;
  if (member.checks) {
    const auto first = content_of(*member.checks), second = content_of(what);
    if (first != second)
      prove(statement_kind::checks, what.member, checks_subject(group_.group, random_id_), first,
            member.checks->by, second, what.by);
    return;
  }
  member.checks = what;
  if (size_only()) return;
  verify_products(what.member);
  if (!all_have_checked()) return;
  verify_sums();
  watch_farthest();
}

bool round_guard::all_have_checked() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const member_state& m) { return !m.contributes || m.checks; });
}

part_product round_guard::said(std::uint32_t m, std::uint32_t part) const {
  const auto& checks = *members_[m].checks;
  return {std::bit_cast<double>(checks.products[part]), std::bit_cast<double>(checks.norms[part])};
}

/// V1, for the parts that we have reduced.
void round_guard::verify_products(std::uint32_t m) {
  for (const auto& [where, chunks] : kept_) {
    const auto& [part, member] = where;
    if (member != m || !members_[m].contributes || !has_all(chunks, part, m)) continue;
    const auto& wires = chunks;
    const auto p = part;
    const auto found = make_products(p).of(
        m, group_.members[m].weight, [&](std::uint32_t k) { return decoded(p, k, wires[k]); });
    if (!same_product(said(m, p), found)) accuse(case_kind::product, m, p);
  }
}

/// True if we have the values of all chunks of the part in which the member is.
bool round_guard::has_all(const wires& chunks, std::uint32_t part, std::uint32_t m) const {
  for (std::uint32_t k = 0; k < senders_[part].size(); ++k) {
    const auto& list = senders_[part][k];
    if (std::binary_search(list.begin(), list.end(), m) && chunks[k].empty()) return false;
  }
  return true;
}

round_guard::sum round_guard::sum_of(std::uint32_t part,
                                     const std::map<std::uint32_t, part_product>& each) const {
  std::vector<double> weights, norms;
  double total = 0;
  for (const auto& [m, one] : each) {
    weights.push_back(static_cast<double>(group_.members[m].weight));
    norms.push_back(one.norm);
    total += weights.back() * one.product;
  }
  const auto allowed = products_.at(part).tolerance(weights, norms);
  // The comparison is false for NaN.
  return std::abs(total) <= allowed ? sum::right : sum::wrong;
}

std::optional<std::map<std::uint32_t, part_product>>
round_guard::all_said(std::uint32_t part) const {
  std::map<std::uint32_t, part_product> out;
  for (const auto m : products_.at(part).senders()) {
    if (!members_[m].checks) return std::nullopt;
    out.emplace(m, said(m, part));
  }
  return out;
}

bool round_guard::is_far(const std::map<std::uint32_t, part_product>& each) const {
  if (config_.guard->most_distance <= 0) return false;
  double far = 0, all = 0;
  for (const auto& [m, one] : each) {
    const auto weight = static_cast<double>(group_.members[m].weight);
    all += weight;
    // NaN is far.
    if (!(one.norm <= config_.guard->most_distance)) far += weight;
  }
  return 2 * far > all;
}

/// V2 and V3, for the parts of which we have all products. The reducer first has time to name the
/// member with a false product. Then the members take turns, so that not all accuse at once.
void round_guard::verify_sums() {
  for (std::uint32_t p = 0; p < size(); ++p) {
    const auto reducer = reducers_[p];
    if (!products_.contains(p) || reducer == self_ || reducer >= size() || summed_.contains(p))
      continue;
    const auto each = all_said(p);
    if (!each) continue;
    summed_.insert(p);
    const bool wrong = sum_of(p, *each) == sum::wrong;
    if (!wrong && !is_far(*each)) continue;
    const auto turn = (self_ + size() - reducer - 1) % size();
    const auto wait = config_.guard->duty_time * (size() + turn) / (8 * size());
    to_accuse_.push_back(
        {wrong ? case_kind::aggregate : case_kind::distance, reducer, p, io_.time() + wait});
    effects_.wake_in(wait);
  }
}

void round_guard::accuse_in_turn() {
  const auto now = io_.time();
  for (auto& each : std::exchange(to_accuse_, {})) {
    if (now < each.due) {
      to_accuse_.push_back(each);
      continue;
    }
    const bool known = std::any_of(cases_.begin(), cases_.end(), [&](const auto& entry) {
      const auto& charge = entry.second.charge;
      if (!charge || charge->part != each.part) return false;
      // A false product explains a false sum.
      return charge->kind == static_cast<std::uint8_t>(case_kind::product) ||
             (charge->kind == static_cast<std::uint8_t>(each.kind) &&
              charge->accused == each.accused);
    });
    if (!known && !members_[each.accused].condemned) accuse(each.kind, each.accused, each.part);
  }
}

// -- audits ---------------------------------------------------------------------------------------

std::vector<bool> round_guard::may_validate() const {
  std::vector<bool> out;
  for (const auto& who : group_.members) out.push_back(who.weight > 0 || who.takes != 0);
  return out;
}

void round_guard::plan() {
  std::vector<std::uint64_t> weights;
  for (std::uint32_t m = 0; m < size(); ++m)
    weights.push_back(members_[m].contributes ? group_.members[m].weight : 0);
  for (const auto& each :
       plan_audits(*random_, weights, may_validate(), config_.guard->validators)) {
    audits_.push_back({each});
    if (each.validator != self_) continue;
    effects_.observe(
        audit_planned{group_.group, self_, each.target, group_.members[each.target].peer});
    if (config_.conduct->validates()) want(each.target);
  }
}

/// The distance of a member's contribution from the result, as the member reports it.
double round_guard::distance_of(std::uint32_t m) const {
  double square = 0;
  for (const auto bits : members_[m].checks->norms)
    square += std::bit_cast<double>(bits) * std::bit_cast<double>(bits);
  return std::sqrt(square);
}

/// Computes the farthest contribution again if we are drawn for it. A member that keeps its
/// distances to itself is the farthest.
void round_guard::watch_farthest() {
  if (size_only() || std::exchange(watched_, true)) return;
  std::vector<double> distances(size(), -1);
  for (std::uint32_t m = 0; m < size(); ++m) {
    const auto& member = members_[m];
    if (!member.contributes || member.condemned) continue;
    if (member.checks)
      distances[m] = distance_of(m) * std::sqrt(static_cast<double>(group_.members[m].weight));
    else if (!is_absent(m))
      distances[m] = std::numeric_limits<double>::infinity();
  }
  const auto suspect = farthest_member(distances);
  if (!suspect || draw_watcher(*random_, may_validate(), *suspect) != self_) return;
  const audit own{self_, *suspect};
  const bool planned = std::any_of(audits_.begin(), audits_.end(),
                                   [&](const audit_state& each) { return each.what == own; });
  if (planned) return;
  audits_.push_back({own, false, false});
  effects_.observe(audit_planned{group_.group, self_, *suspect, group_.members[*suspect].peer});
  if (config_.conduct->validates()) want(*suspect);
}

/// Asks the owner for the target's contribution, once.
void round_guard::want(std::uint32_t target) {
  const auto& commitment = members_[target].commitment;
  if (!commitment || commitment->parts.empty() || recomputed_.contains(target)) return;
  recomputed_.emplace(target, std::nullopt);
  effects_.recompute({group_.group, group_.epoch, group_.state, target,
                      group_.members[target].weight, commitment->blocks});
}

std::optional<round_guard::finding> round_guard::compare(std::uint32_t target,
                                                         const payload& values) const {
  const auto& codec = request_.codecs.contributions;
  if (values.size() != contribution_.size() || values.is_size_only() != size_only() ||
      (codec && !size_only() && !kernels::all_finite(values.floats())))
    return std::nullopt;
  const auto& parts = members_[target].commitment->parts;
  for (std::uint32_t p = 0; p < size(); ++p) {
    std::vector<id128> chunks;
    for (std::uint32_t k = 0; k < layout_.grid(p).count(); ++k)
      chunks.push_back(hash_of_chunk(layout_.to_wire(codec, p, k, layout_.slice(values, p, k))));
    if (hash_of_chunks(chunks) != parts[p]) return finding::wrong;
  }
  return finding::right;
}

void round_guard::recomputed(const audit_done& answer) {
  const auto found = recomputed_.find(answer.target);
  if (over_ || answer.group != group_.group || found == recomputed_.end() || found->second ||
      !answer.computed)
    return;
  found->second = compare(answer.target, answer.values);
  if (!found->second) return;
  for (auto& each : audits_) {
    if (each.what != audit{self_, answer.target} || each.done) continue;
    each.done = true;
    const bool right = config_.conduct->finds_right(group_.members[answer.target],
                                                    *found->second == finding::right);
    effects_.observe(
        audited{group_.group, self_, answer.target, group_.members[answer.target].peer, right});
    if (right)
      tell_all(audit_passed{group_.group, self_, answer.target});
    else
      accuse(case_kind::gradient, answer.target, 0);
  }
  for (auto& [id, one] : cases_) judge(id, one);
  end_if_done();
}

void round_guard::on(const audit_passed& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "audit by a stranger")) return;
  note_audit(message.member, message.target);
}

void round_guard::note_audit(std::uint32_t validator, std::uint32_t target) {
  // A report may come before we know the plan.
  reported_.insert({validator, target});
}

bool round_guard::is_absent(std::uint32_t m) const {
  const auto& member = members_[m];
  return (!member.stayed && (member.gone || effects_.is_lost(m))) || member.condemned || apart(m);
}

/// The time for audits and checks is over.
void round_guard::end_duties() {
  duties_over_ = true;
  // Some parts may have all products even if some members have sent none.
  if (!size_only()) verify_sums();
  for (const auto& each : audits_) {
    const auto [validator, target] = each.what;
    // With another number it has another plan.
    if (each.owed && validator != self_ && !is_absent(validator) && members_[validator].checks &&
        !reported_.contains({validator, target}))
      effects_.note_failure(validator, "it did not compute its target's contribution again");
  }
  distances seen{group_.group, self_, std::vector<double>(size(), -1), {}};
  for (const auto& who : group_.members) seen.peers.push_back(who.peer);
  for (std::uint32_t m = 0; m < size(); ++m) {
    const auto& member = members_[m];
    if (m != self_ && member.commitment && !is_absent(m)) {
      if (!member.secret) effects_.note_failure(m, "it did not reveal its secret");
      // A member that takes no result has nothing to check.
      if (!member.has_checked && group_.members[m].takes != 0)
        effects_.note_failure(m, "it did not send its checks");
    }
    if (!member.contributes || !member.checks) continue;
    seen.norms[m] = distance_of(m);
  }
  effects_.observe(seen);
}

} // namespace shoal::actors
