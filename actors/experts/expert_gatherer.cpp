#include "actors/experts/expert_gatherer.hpp"

#include "actors/dht/messages.hpp"
#include "actors/experts/size_bound.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace shoal::actors {

expert_gatherer::expert_gatherer(caf::actor_config& config, host& on,
                                 expert_gatherer_config options)
    : protocol_actor(config, on), options_(std::move(options)), got_(options_.experts.size()) {
  SHOAL_CHECK(options_.before.size() == got_.size() && options_.then,
              "a model has a state for each expert");
  for (std::size_t n = 0; n < got_.size(); ++n) numbers_[options_.experts[n]] = n;
}

void expert_gatherer::on_exit() {
  options_.dht = nullptr;
  options_.then = nullptr;
  waiting_.clear();
  asked_.clear();
  protocol_actor::on_exit();
}

caf::behavior expert_gatherer::make_behavior() {
  began_ = now();
  look_up();
  return {
      [this](const found& m) { receive(m); },
      [this](const expert_copy& m) { receive(m); },
      [this](const expert_refused& m) {
        const auto at = asked_.find(m.request);
        if (at != asked_.end() && sent_by(at->second.to)) give_up(m.request);
      },
      [this](const tick& t) {
        if (t.kind == again) return look_up();
        if (asked_.contains(t.token)) give_up(t.token);
      },
  };
}

void expert_gatherer::look_up() {
  ++tried_;
  std::set<expert_id> prefixes;
  for (std::size_t n = 0; n < got_.size(); ++n)
    if (!got_[n]) prefixes.insert(parent_of(options_.experts[n]));
  for (const auto& each : prefixes) {
    look_ups_[++last_token_] = each;
    send(options_.dht,
         lookup{prefix_key(options_.model, each.layer, each.place), address(), last_token_});
  }
}

void expert_gatherer::receive(const found& m) {
  const auto at = look_ups_.find(m.token);
  if (at == look_ups_.end()) return;
  const auto prefix = at->second;
  look_ups_.erase(at);
  const expert_dictionary records(m, here());
  for (std::size_t n = 0; n < got_.size(); ++n) {
    const auto& which = options_.experts[n];
    if (got_[n] || parent_of(which) != prefix) continue;
    if (const auto holder = records.holder(which.place.back(), {}, here().utc_ns(), now()))
      waiting_.push_back({n, holder->address});
  }
  ask_more();
}

void expert_gatherer::ask_more() {
  while (!waiting_.empty() && asked_.size() < options_.in_flight) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    const auto& which = options_.experts[next.number];
    const auto to = next.to;
    asked_[++last_token_] = std::move(next);
    monitor(to);
    set_timer(options_.timeout, late, last_token_);
    send(to, expert_wanted{address(), last_token_, which.layer, which.place});
  }
  if (!asked_.empty() || !waiting_.empty() || !look_ups_.empty()) return;
  const bool whole = std::none_of(got_.begin(), got_.end(), [](const auto& one) { return !one; });
  if (whole || tried_ >= options_.attempts) return end();
  set_timer(options_.pause, again);
}

void expert_gatherer::receive(const expert_copy& m) {
  const auto at = numbers_.find({m.layer, m.place});
  if (at == numbers_.end()) return sender_misbehaves("a copy of an expert beyond the grid");
  const auto asked = std::find_if(asked_.begin(), asked_.end(), [&](const auto& one) {
    return one.second.number == at->second && sent_by(one.second.to);
  });
  if (asked == asked_.end()) return;
  auto state = expert_state::unpack(m.values, options_.parameters, m.steps, 0, options_.optimizer);
  if (!state) {
    sender_misbehaves(state.error());
    return give_up(asked->first);
  }
  bytes_ += m.values.size();
  got_[at->second] = std::make_shared<const expert_state>(std::move(*state));
  asked_.erase(asked);
  ask_more();
}

void expert_gatherer::give_up(std::uint64_t request) {
  asked_.erase(request);
  ask_more();
}

void expert_gatherer::on_down(const caf::actor_addr& whom) {
  const auto gone = [&](const auto& to) { return caf::actor_cast<caf::actor_addr>(to) == whom; };
  std::erase_if(waiting_, [&](const auto& one) { return gone(one.to); });
  if (std::erase_if(asked_, [&](const auto& one) { return gone(one.second.to); }) > 0) ask_more();
}

void expert_gatherer::drop_too_large() {
  if (options_.most_growth == 0) return;
  std::vector<std::size_t> at;
  std::vector<double> sizes; // by the places in `at`
  for (std::size_t n = 0; n < got_.size(); ++n)
    if (got_[n]) {
      at.push_back(n);
      sizes.push_back(size_of_values(got_[n]->parameters));
    }
  if (sizes.empty()) return;
  const auto middle = middle_of(sizes);
  for (std::size_t i = 0; i < at.size(); ++i)
    if (sizes[i] > options_.most_growth * middle) got_[at[i]].reset();
}

void expert_gatherer::end() {
  drop_too_large();
  model_gathered seen{options_.epoch, got_.size(), 0, bytes_, now() - began_};
  for (std::size_t n = 0; n < got_.size(); ++n) {
    if (got_[n]) continue;
    ++seen.missing;
    got_[n] = options_.before[n];
  }
  std::exchange(options_.then, nullptr)(std::exchange(got_, {}));
  here().observe(seen);
  quit();
}

} // namespace shoal::actors
