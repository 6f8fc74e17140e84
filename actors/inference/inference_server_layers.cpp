// The choice of an inference server's layers.
#include "actors/dht/messages.hpp"
#include "actors/inference/inference_server.hpp"
#include "actors/inference/observations.hpp"
#include "actors/observe.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

constexpr std::uint64_t load_work = 1; // work_done::token

/// Tokens a second through one layer.
double speed_of(duration layer_time) {
  return 1 / std::max(to_seconds(layer_time), 1e-9);
}

} // namespace

caf::message_handler inference_server::placement_behavior() {
  return {
      [this](const found& m) {
        read_servers(m);
        choose(m);
      },
      [this](const stay_request& m) { receive(m); },
      [this](const stay_answer& m) { receive(m); },
  };
}

void inference_server::set_place_timer() {
  const auto& by = *options_.placement;
  if (held().count() == 0)
    return set_timer(from_seconds(to_seconds(by.join_within) * (1 + choices_.uniform()) / 2),
                     place);
  // Servers that joined at once may have chosen the same layers, so a young one thinks more often.
  thought_every_ = std::min(by.every, 2 * std::max(thought_every_, by.join_within));
  // Servers that think at different times rarely meet each other's moves.
  set_timer(from_seconds(to_seconds(thought_every_) * (0.5 + choices_.uniform())), place);
}

std::vector<placed_server> inference_server::placed() const {
  std::vector<placed_server> out;
  for (const auto& each : others_.views(now()))
    if (each.peer != here().id())
      out.push_back({each.peer, each.layers, speed_of(from_seconds(each.layer_seconds))});
  if (held().count() > 0)
    out.push_back({here().id(), held(), speed_of(options_.layer_time + options_.layer_batch_time)});
  return out;
}

void inference_server::choose(const found& m) {
  if (!options_.placement || draining_ || target_) return;
  others_.read(m, here());
  const auto& by = *options_.placement;
  const auto all = placed();
  std::optional<layer_span> to;
  if (held().count() == 0)
    to = weakest_window(all, by.layers, by.count);
  else if (move_.may_begin(now()))
    to = better_window(all, by.layers, here().id(), choices_, by.quality);
  if (!to || *to == held()) return;
  // Blocks are loaded before the move, so that the move itself takes no time.
  target_ = target{*to, std::make_shared<held_blocks>()};
  here().run(
      "load layers", [load = by.load, what = *target_] { *what.blocks = load(what.layers); },
      duration{}, caf::actor_cast<caf::actor>(this), load_work);
}

void inference_server::loaded() {
  if (!target_) return;
  if (held().count() == 0) {
    const auto first = std::exchange(target_, std::nullopt);
    take(first->layers, std::move(*first->blocks));
    here().observe(layers_taken{held(), {}});
    return publish();
  }
  if (draining_ || !move_.may_begin(now())) return target_.reset();
  for (const auto whom : move_.begin(held(), target_->layers, placed(), now()))
    if (const auto* other = others_.find(whom))
      send(other->address, stay_request{address(), move_.round(), held().first, held().last});
  set_timer(move_.by().timeout, move_late, move_.round());
}

void inference_server::receive(const stay_request& m) {
  if (!is_senders(m.reply_to))
    return sender_misbehaves("a question whose answer goes to another host");
  const bool holds_some = m.first < held().last && held().first < m.last;
  const bool stays =
      holds_some && !draining_ && (!options_.placement || move_.promise(sender_member(), now()));
  send(m.reply_to,
       stay_answer{m.round, held().first, held().last, static_cast<std::uint8_t>(stays)});
}

void inference_server::receive(const stay_answer& m) {
  if (m.stays != 1 || m.first >= m.last ||
      !move_.promised(sender_peer(), m.round, {m.first, m.last}))
    return;
  const auto to = move_.due(now());
  if (!to || !target_) return;
  const auto before = held();
  auto next = std::exchange(target_, std::nullopt);
  move_.end();
  take(next->layers, std::move(*next->blocks));
  here().observe(layers_taken{held(), before});
  publish();
}

} // namespace shoal::actors
