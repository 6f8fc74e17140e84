#include "actors/training/state_fetcher.hpp"

#include <algorithm>
#include <cstring>

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

namespace shoal::actors {

namespace {
constexpr std::uint32_t look_timer = 1;
}

state_fetcher::state_fetcher(caf::actor_config& config, host& on, caf::actor owner, fetch_config options,
                             std::vector<caf::actor> donors, std::uint64_t expected_bytes, bool hollow)
    : protocol_actor(config, on),
      owner_(std::move(owner)),
      options_(options),
      expected_bytes_(expected_bytes),
      hollow_(hollow) {
  for (auto& address : donors) donors_.push_back({std::move(address), {}, false, {}});
}

caf::behavior state_fetcher::make_behavior() {
  for (auto& d : donors_) {
    monitor(d.address);
    d.last_progress = now();
    send(d.address, state_request{address()});
  }
  set_timer(options_.donor_timeout / 4, look_timer);
  return {
      [this](state_offer& m) { on_offer(m); },
      [this](state_refused&) { on_refused(); },
      [this](state_chunk& m) { on_chunk(m); },
      [this](tick&) {
        look_for_silence();
        set_timer(options_.donor_timeout / 4, look_timer);
      },
  };
}

void state_fetcher::on_exit() {
  // They live on, and would keep each dead watcher of theirs in memory.
  for (const auto& d : donors_) demonitor(d.address);
  donors_.clear();
  owner_ = nullptr;
  bytes_ = {};
  protocol_actor::on_exit();
}

state_fetcher::donor* state_fetcher::sender_donor() {
  for (auto& d : donors_)
    if (caf::actor_cast<caf::strong_actor_ptr>(d.address) == current_sender()) return &d;
  return nullptr;
}

void state_fetcher::on_offer(const state_offer& offer) {
  auto* from = sender_donor();
  if (!from) return misbehaviour(0, "state offer by a stranger");
  from->last_progress = now();
  if (offer.size != expected_bytes_ || offer.parameter_bytes > offer.size || offer.size > options_.max_bytes) {
    misbehaviour(0, "state offer of a size that cannot be");
    return drop(*from);
  }
  if (!have_offer_) {
    have_offer_ = true;
    offer_ = offer;
    if (!hollow_) bytes_.resize(offer.size);
    for (std::uint64_t at = 0; at < offer.size; at += options_.chunk_bytes) missing_.insert(at);
    if (missing_.empty()) return finish();
  } else if (offer.state != offer_.state || offer.content != offer_.content) {
    return drop(*from);  // on another branch, or a step ahead
  }
  ask();
}

void state_fetcher::on_refused() {
  if (auto* from = sender_donor()) return drop(*from);
  misbehaviour(0, "refusal of a state by a stranger");
}

void state_fetcher::ask() {
  if (!have_offer_) return;
  for (bool more = true; more;) {
    more = false;
    for (auto& d : donors_) {
      if (d.gone || missing_.empty() || d.asked.size() >= options_.window_chunks) continue;
      auto at = *missing_.begin();
      missing_.erase(missing_.begin());
      d.asked.insert(at);
      ++outstanding_;
      auto count = static_cast<std::uint32_t>(std::min(options_.chunk_bytes, offer_.size - at));
      send(d.address, state_chunk_request{offer_.state, at, count, address()});
      more = true;
    }
  }
}

void state_fetcher::on_chunk(const state_chunk& chunk) {
  auto* from = sender_donor();
  if (!from || !from->asked.contains(chunk.offset)) return;  // too late: asked of somebody else meanwhile
  auto count = std::min(options_.chunk_bytes, offer_.size - chunk.offset);
  if (chunk.state != offer_.state || chunk.data.size() != count || chunk.data.is_hollow() != hollow_) {
    if (!chunk.data.empty()) misbehaviour(0, "state chunk that was not asked for");
    return drop(*from);
  }
  from->last_progress = now();
  from->asked.erase(chunk.offset);
  --outstanding_;
  if (!hollow_) std::memcpy(bytes_.data() + chunk.offset, chunk.data.bytes().data(), count);
  if (missing_.empty() && outstanding_ == 0) return finish();
  ask();
}

void state_fetcher::drop(donor& which) {
  if (which.gone) return;
  which.gone = true;
  outstanding_ -= which.asked.size();
  missing_.merge(which.asked);
  which.asked.clear();
  if (std::all_of(donors_.begin(), donors_.end(), [](const donor& d) { return d.gone; })) return report(nullptr);
  ask();
}

void state_fetcher::look_for_silence() {
  for (auto& d : donors_)
    if (!d.gone && (!have_offer_ || !d.asked.empty()) && now() - d.last_progress > options_.donor_timeout) drop(d);
}

void state_fetcher::on_down(const caf::actor_addr& whom) {
  for (auto& d : donors_)
    if (caf::actor_cast<caf::actor_addr>(d.address) == whom) drop(d);
}

void state_fetcher::finish() {
  model_state state;
  state.epoch = offer_.epoch;
  state.id = offer_.state;
  state.step = offer_.step;
  state.samples = offer_.samples;
  if (hollow_) {
    state.parameters = payload::hollow(offer_.parameter_bytes);
    state.optimizer = payload::hollow(offer_.size - offer_.parameter_bytes);
  } else {
    payload all{std::move(bytes_)};
    state.parameters = all.slice(0, offer_.parameter_bytes);
    state.optimizer = all.slice(offer_.parameter_bytes, offer_.size - offer_.parameter_bytes);
  }
  if (content_of(state) != offer_.content) {
    misbehaviour(0, "downloaded state does not hash to what was offered");
    return report(nullptr);
  }
  report(std::make_shared<const model_state>(std::move(state)));
}

void state_fetcher::report(state_ptr state) {
  send(owner_, state_report{std::move(state)});
  quit();
}

}  // namespace shoal::actors
