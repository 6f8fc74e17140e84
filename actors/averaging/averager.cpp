#include "actors/averaging/averager.hpp"

#include "actors/averaging/averager_messages.hpp"
#include "actors/averaging/group.hpp"
#include "kernels/mixing.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shoal::actors {

namespace {

constexpr unsigned most_tries = 3;
constexpr std::size_t most_open = 64;

/// As many numbers as ours, and numbers at all.
bool fits(const payload& theirs, const payload& ours) {
  if (theirs.size() != ours.size() || theirs.is_size_only()) return false;
  const auto values = theirs.floats();
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

/// Doubles in a payload, bit by bit: sums of push-sum would not survive as floats.
payload pack(const std::vector<double>& values) {
  std::vector<std::byte> out(values.size() * sizeof(double));
  std::memcpy(out.data(), values.data(), out.size());
  return payload{std::move(out)};
}

} // namespace

averager::averager(caf::actor_config& config, host& on, averager_config options)
    : protocol_actor(config, on), options_(std::move(options)),
      draws_(on.random_stream("averager")),
      gathering_(4 * options_.round.poll_interval, options_.round.matchmaking_time),
      answering_(options_.least_patience, options_.round.sender_timeout) {}

caf::behavior averager::make_behavior() {
  if (options_.on_made) options_.on_made(options_.index, *this);
  return {
      [this](hold_values& m) {
        values_ = std::move(m.values);
        weight_ = 1;
        sums_.assign(values_.floats().begin(), values_.floats().end());
      },
      [this](averaging_round& m) { begin(std::move(m)); },
      [this](whole_part& m) {
        if (!available_) return;
        if (given_ && m.round == round_) {
          on_part(m.sender, caf::actor_cast<caf::actor_addr>(current_sender()), m.values);
        } else if (m.round == round_ + 1 && early_parts_.size() < options_.round.group_size) {
          early_parts_.push_back(
              {m.sender, caf::actor_cast<caf::actor_addr>(current_sender()), std::move(m.values)});
        }
      },
      [this](const whole_mean& m) {
        if (!given_ || m.round != round_) return;
        if (!is_member(m.sender, caf::actor_cast<caf::actor_addr>(current_sender())))
          return misbehaviour(0, "a mean of somebody who is not in the group");
        on_mean(m.sender, m.values);
      },
      // A group that found together in the DHT.
      [this](const round_report& m) {
        group_ = nullptr;
        const auto& result = *m.result;
        if (!running_ || result.epoch != round_) return;
        if (result.gathered > duration{}) gathering_.measured(result.gathered);
        if (result.succeeded()) values_ = result.values;
        over(result.outcome, result.reason);
      },
      [this](gossip_offer& m) {
        if (!available_ || !current_sender()) return;
        auto answer = [&](payload half) {
          send(caf::actor_cast<caf::actor>(current_sender()),
               gossip_answer{m.token, std::move(half)});
        };
        if (asked_)
          return answer({}); // two that wait for each other would count the same difference twice
        if (!fits(m.values, values_))
          return misbehaviour(0, "gossip of another vector, or of numbers that are none");
        std::vector<float> mine(values_.floats().begin(), values_.floats().end()),
            half(mine.size());
        for (std::size_t i = 0; i < mine.size(); ++i) {
          half[i] = (m.values.floats()[i] - mine[i]) / 2;
          mine[i] += half[i];
        }
        values_ = payload{std::move(mine)};
        answer(payload{std::move(half)});
      },
      [this](gossip_answer& m) {
        const auto found = open_.find(m.token);
        if (found == open_.end() || !sent_by(found->second))
          return misbehaviour(0, "an answer that nobody asked for");
        open_.erase(found);
        const bool current = asked_ && m.token == token_;
        if (current) {
          asked_ = nullptr;
          answering_.measured(now() - begun_);
        }
        if (!m.half.empty()) {
          if (!fits(m.half, values_))
            return misbehaviour(0, "half of another vector, or of numbers that are none");
          std::vector<float> mine(values_.floats().begin(), values_.floats().end());
          for (std::size_t i = 0; i < mine.size(); ++i) mine[i] -= m.half.floats()[i];
          values_ = payload{std::move(mine)}; // late or not: the other has moved
        }
        if (!current || !running_) return;
        if (!m.half.empty()) return over(outcome::ok);
        offer_later();
      },
      [this](const push_share& m) {
        if (!available_ || !current_sender()) return;
        if (m.sums.is_size_only() || m.sums.size() != (sums_.size() + 1) * sizeof(double))
          return misbehaviour(0, "a share of another vector");
        std::vector<double> theirs(sums_.size() + 1);
        std::memcpy(theirs.data(), m.sums.bytes().data(), m.sums.size());
        if (!std::all_of(theirs.begin(), theirs.end(), [](double x) { return std::isfinite(x); }) ||
            theirs.back() <= 0)
          return misbehaviour(0, "a share of numbers that are none, or without weight");
        weight_ += theirs.back();
        for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += theirs[i];
        send(caf::actor_cast<caf::actor>(current_sender()), push_received{m.token});
      },
      [this](push_received m) {
        const auto found = unconfirmed_.find(m.token);
        if (found == unconfirmed_.end())
          return; // taken back meanwhile: its mass is there twice now
        if (!sent_by(found->second.first)) return misbehaviour(0, "a receipt for what another got");
        unconfirmed_.erase(found);
        if (!unconfirmed_.empty() || !running_) return;
        answering_.measured(now() - begun_);
        over(outcome::ok);
      },
      [this](const tick& m) {
        if (m.token != round_ || !running_) return;
        if (m.kind == offer_now) return offer();
        if (m.kind == patience_over && given_) {
          if (!given_
                   ->reduced) { // with those that came; then as long again for the means of others
            given_->parts_missing = 0;
            reduce_mine();
            if (running_) set_timer(options_.round.round_timeout / 2, patience_over, round_);
            return;
          }
          values_ = payload{std::move(given_->result)};
          return over(outcome::partial, reason::sender_timeout);
        }
        if (m.kind != patience_over || (options_.strategy == averaging_strategy::gossip && !asked_))
          return;
        answering_.ran_out();
        if (asked_) {
          asked_ = nullptr;
          return offer_later();
        }
        // What nobody confirmed stays with us.
        for (auto& [token, share] : unconfirmed_) {
          weight_ += share.second.back();
          for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += share.second[i];
        }
        unconfirmed_.clear();
        over(outcome::partial, reason::sender_lost);
      },
  };
}

void averager::on_exit() {
  given_.reset();
  options_ = {};
  group_ = asked_ = nullptr;
  open_.clear();
  unconfirmed_.clear();
  protocol_actor::on_exit();
}

void averager::begin(averaging_round what) {
  round_ = what.number;
  available_ = what.available;
  running_ = available_;
  begun_ = now();
  given_.reset();
  if (group_) send(group_, tick{group_actor::cancel, 0});
  if (!running_) return;
  switch (options_.strategy) {
  case averaging_strategy::gossip:
    tries_ = 0;
    return offer_later();
  case averaging_strategy::push_sum:
    return push();
  default:
    return what.group ? run_given(what) : find_group(what);
  }
}

void averager::find_group(const averaging_round& what) {
  round_request request;
  request.epoch = what.number;
  request.state = what.meeting;
  request.values = values_;
  request.weight = 1;
  const bool reduces =
      options_.strategy != averaging_strategy::parameter_server || options_.index == 0;
  request.rate_up = here().rate_up();
  request.rate_down = here().rate_down();
  if (!reduces) request.reached = reached_by::nobody;
  request.wanted = what.wanted;
  request.patience = gathering_.value();
  request.dht = options_.dht;
  group_ = spawn<group_actor>(std::ref(here()), caf::actor_cast<caf::actor>(this), options_.round,
                              std::move(request));
}

bool averager::is_member(std::uint32_t member, const caf::actor_addr& sender) const {
  const auto& m = given_->group->members;
  return member < m.size() && member != given_->self && m[member].address.address() == sender;
}

void averager::run_given(const averaging_round& what) {
  const auto& members = what.group->members;
  const auto& cuts = what.group->boundaries;
  const auto size = static_cast<std::uint32_t>(members.size());
  given_ = std::make_unique<given_group>();
  auto& s = *given_;
  s.group = what.group;
  while (members[s.self].peer != here().id()) ++s.self;
  s.parts.resize(size);
  s.has_mean.resize(size);
  s.result.assign(values_.floats().begin(), values_.floats().end());
  for (std::uint32_t m = 0; m < size; ++m)
    if (cuts[m] < cuts[m + 1]) ++s.means_missing;
  const bool reduces = cuts[s.self] < cuts[s.self + 1];
  s.parts_missing = reduces ? size : 0;
  // Starts with the next member, so that not everybody sends to the first one at once.
  for (std::uint32_t step = 1; step < size; ++step) {
    const auto to = (s.self + step) % size;
    if (cuts[to] < cuts[to + 1])
      send(members[to].address,
           whole_part{round_, s.self, values_.slice(4 * cuts[to], 4 * (cuts[to + 1] - cuts[to]))});
  }
  set_timer(options_.round.round_timeout / 2, patience_over, round_);
  if (!reduces) s.reduced = true;
  if (reduces)
    keep_part(s.self, values_.slice(4 * cuts[s.self], 4 * (cuts[s.self + 1] - cuts[s.self])));
  for (const auto& early : std::exchange(early_parts_, {}))
    if (given_) on_part(early.sender, early.by, early.values);
}

void averager::on_part(std::uint32_t sender, const caf::actor_addr& by, const payload& values) {
  if (!is_member(sender, by)) return misbehaviour(0, "a part of somebody who is not in the group");
  auto& s = *given_;
  const auto& cuts = s.group->boundaries;
  if (values.is_size_only() || values.size() != 4 * (cuts[s.self + 1] - cuts[s.self]) ||
      !s.parts[sender].empty())
    return misbehaviour(s.group->members[sender].peer, "a part of another size, or twice");
  if (!s.reduced) keep_part(sender, values);
}

void averager::keep_part(std::uint32_t sender, const payload& values) {
  auto& s = *given_;
  s.parts[sender] = values;
  if (--s.parts_missing == 0) reduce_mine();
}

void averager::reduce_mine() {
  auto& s = *given_;
  const auto& cuts = s.group->boundaries;
  s.reduced = true;
  std::vector<double> sum(cuts[s.self + 1] - cuts[s.self]);
  std::size_t count = 0;
  for (const auto& part : s.parts) { // in member order: one order, one result
    if (part.empty()) continue;
    ++count;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part.floats()[i];
  }
  std::vector<float> mean(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i)
    mean[i] = static_cast<float>(sum[i] / static_cast<double>(count));
  s.parts.clear();
  s.parts.resize(s.has_mean.size());
  const payload reply{std::move(mean)};
  const auto& members = s.group->members;
  for (std::uint32_t step = 1; step < members.size(); ++step)
    send(members[(s.self + step) % members.size()].address, whole_mean{round_, s.self, reply});
  on_mean(s.self, reply);
}

void averager::on_mean(std::uint32_t sender, const payload& values) {
  auto& s = *given_;
  const auto& cuts = s.group->boundaries;
  if (values.is_size_only() || values.empty() ||
      values.size() != 4 * (cuts[sender + 1] - cuts[sender]) || s.has_mean[sender] != 0)
    return misbehaviour(s.group->members[sender].peer, "a mean of another size, or twice");
  s.has_mean[sender] = 1;
  std::copy(values.floats().begin(), values.floats().end(),
            s.result.begin() + static_cast<std::ptrdiff_t>(cuts[sender]));
  if (--s.means_missing > 0 || !running_) return;
  values_ = payload{std::move(s.result)};
  over(outcome::ok);
}

void averager::offer_later() {
  if (options_.everyone->size() < 2) return over(outcome::ok);
  if (tries_++ == most_tries) return over(outcome::failed, reason::group_too_small);
  const auto span = 4 * (answering_.known() ? answering_.value() : options_.least_patience);
  set_timer(
      duration{static_cast<std::int64_t>(draws_.below(static_cast<std::uint64_t>(span.count())))},
      offer_now, round_);
}

void averager::offer() {
  const auto& all = *options_.everyone;
  auto to = static_cast<std::uint32_t>(draws_.below(all.size() - 1));
  to += to >= options_.index ? 1 : 0;
  asked_ = all[to];
  token_ = round_ * most_tries + tries_;
  if (open_.size() >= most_open) open_.erase(open_.begin());
  open_[token_] = asked_;
  begun_ = now();
  send(asked_, gossip_offer{token_, values_});
  set_timer(answering_.value(), patience_over, round_);
}

void averager::push() {
  const auto& all = *options_.everyone;
  const auto to = kernels::exponential_neighbours(options_.index,
                                                  static_cast<std::uint32_t>(all.size()), round_);
  if (to.empty()) return over(outcome::ok);
  const double share = 1 / static_cast<double>(to.size() + 1);
  std::vector<double> part(sums_);
  part.push_back(weight_);
  for (auto& x : part) x *= share;
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] = part[i];
  weight_ = part.back();
  for (auto index : to) {
    unconfirmed_[++token_] = {all[index], part};
    send(all[index], push_share{token_, pack(part)});
  }
  set_timer(answering_.value(), patience_over, round_);
}

void averager::over(outcome how, reason why) {
  running_ = false;
  if (options_.strategy == averaging_strategy::push_sum) {
    std::vector<float> estimate(sums_.size());
    for (std::size_t i = 0; i < sums_.size(); ++i)
      estimate[i] = static_cast<float>(sums_[i] / weight_);
    values_ = payload{std::move(estimate)};
  }
  options_.on_done(options_.index, {round_, how, why});
}

} // namespace shoal::actors
