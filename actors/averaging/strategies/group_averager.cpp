#include "actors/averaging/strategies/group_averager.hpp"

#include "actors/averaging/averager_messages.hpp"
#include "actors/averaging/group.hpp"

#include <algorithm>

namespace shoal::actors {

group_averager::group_averager(caf::actor_config& config, host& on, averager_config with)
    : averager(config, on, std::move(with)),
      gathering_(4 * options().round.poll_interval, options().round.matchmaking_time) {}

caf::message_handler group_averager::handlers() {
  return {
      [this](whole_part& m) {
        if (!available()) return;
        if (given_ && m.round == round()) {
          on_part(m.sender, caf::actor_cast<caf::actor_addr>(current_sender()), m.values);
        } else if (m.round == round() + 1 && early_parts_.size() < options().round.group_size) {
          early_parts_.push_back(
              {m.sender, caf::actor_cast<caf::actor_addr>(current_sender()), std::move(m.values)});
        }
      },
      [this](const whole_mean& m) {
        if (!given_ || m.round != round()) return;
        if (!is_member(m.sender, caf::actor_cast<caf::actor_addr>(current_sender())))
          return sender_misbehaves("a mean of somebody who is not in the group");
        on_mean(m.sender, m.values);
      },
      // A group that found together in the DHT has ended its round.
      [this](const round_report& m) {
        group_ = nullptr;
        const auto& result = *m.result;
        if (!running() || result.epoch != round()) return;
        if (result.gathered > duration{}) gathering_.measured(result.gathered);
        if (result.succeeded()) values_ = result.values;
        over(result.outcome, result.reason);
      },
  };
}

void group_averager::on_timer(std::uint32_t) {
  if (!given_) return;
  if (given_->reduced) {
    values_ = payload{std::move(given_->result)};
    return over(outcome::partial, reason::sender_timeout);
  }
  // Reduces what came, and then waits as long again for the means of others.
  given_->parts_missing = 0;
  reduce_mine();
  if (running()) set_round_timer(options().round.round_timeout / 2, timed_out);
}

void group_averager::on_exit() {
  given_.reset();
  group_ = nullptr;
  averager::on_exit();
}

void group_averager::abandon() {
  given_.reset();
  if (group_) send(group_, tick{group_actor::cancel, 0});
}

void group_averager::begin(const averaging_round& what) {
  return what.group ? run_given(what) : find_group(what);
}

void group_averager::find_group(const averaging_round& what) {
  round_request request;
  request.epoch = what.number;
  request.state = what.meeting;
  request.values = values_;
  request.weight = 1;
  request.rate_up = here().rate_up();
  request.rate_down = here().rate_down();
  if (!options().reduces) request.reached = reached_by::nobody;
  request.wanted = what.wanted;
  request.max_wait = gathering_.value();
  request.dht = options().dht;
  group_ = spawn<group_actor>(std::ref(here()), caf::actor_cast<caf::actor>(this), options().round,
                              std::move(request));
}

bool group_averager::is_member(std::uint32_t member, const caf::actor_addr& sender) const {
  const auto& m = given_->group->members;
  return member < m.size() && member != given_->self && m[member].address.address() == sender;
}

void group_averager::run_given(const averaging_round& what) {
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
           whole_part{round(), s.self, values_.slice(4 * cuts[to], 4 * (cuts[to + 1] - cuts[to]))});
  }
  set_round_timer(options().round.round_timeout / 2, timed_out);
  if (!reduces) s.reduced = true;
  if (reduces)
    keep_part(s.self, values_.slice(4 * cuts[s.self], 4 * (cuts[s.self + 1] - cuts[s.self])));
  for (const auto& early : std::exchange(early_parts_, {}))
    if (given_) on_part(early.sender, early.by, early.values);
}

void group_averager::on_part(std::uint32_t sender, const caf::actor_addr& by,
                             const payload& values) {
  if (!is_member(sender, by))
    return sender_misbehaves("a part of somebody who is not in the group");
  auto& s = *given_;
  const auto& cuts = s.group->boundaries;
  if (values.is_size_only() || values.size() != 4 * (cuts[s.self + 1] - cuts[s.self]) ||
      !s.parts[sender].empty())
    return misbehaviour(s.group->members[sender].peer, "a part of another size, or twice");
  if (!s.reduced) keep_part(sender, values);
}

void group_averager::keep_part(std::uint32_t sender, const payload& values) {
  auto& s = *given_;
  s.parts[sender] = values;
  if (--s.parts_missing == 0) reduce_mine();
}

void group_averager::reduce_mine() {
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
    send(members[(s.self + step) % members.size()].address, whole_mean{round(), s.self, reply});
  on_mean(s.self, reply);
}

void group_averager::on_mean(std::uint32_t sender, const payload& values) {
  auto& s = *given_;
  const auto& cuts = s.group->boundaries;
  if (values.is_size_only() || values.empty() ||
      values.size() != 4 * (cuts[sender + 1] - cuts[sender]) || s.has_mean[sender] != 0)
    return misbehaviour(s.group->members[sender].peer, "a mean of another size, or twice");
  s.has_mean[sender] = 1;
  std::copy(values.floats().begin(), values.floats().end(),
            s.result.begin() + static_cast<std::ptrdiff_t>(cuts[sender]));
  if (--s.means_missing > 0 || !running()) return;
  values_ = payload{std::move(s.result)};
  over(outcome::ok);
}

} // namespace shoal::actors
