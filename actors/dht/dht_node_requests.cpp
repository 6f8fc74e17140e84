// DHT node: requests, and what follows when one is slow or fails. The rules are in dht_node.hpp and
// request_tracker.hpp.
#include "actors/dht/dht_node.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

constexpr unsigned most_again = 2;

} // namespace

template <class Message>
void dht_node::ask(request what, Message message) {
  const auto token = state_->next_token++;
  message.from = state_->self;
  message.client = client();
  message.token = token;
  const auto to = what.to.address;
  if (state_->requests.open(token, std::move(what), now())) monitor(to);
  wait_for_requests();
  send(to, std::move(message));
}

void dht_node::ask_address(const caf::actor& address, kind what) {
  ask(request{what, {{}, address}, 0, {}, 0, {}, 0}, nodes_query{{}, 0, 0, state_->self.id});
}

void dht_node::query(const contact& to, std::uint64_t in, const std::string& key, kind what,
                     bool nodes, unsigned again) {
  if (key.empty()) {
    const auto found = state_->searches.find(in);
    const auto target = found == state_->searches.end() ? node_id{} : found->second.lookup.target();
    return ask(request{what, to, in, {}, 0, {}, again}, nodes_query{{}, 0, 0, target});
  }
  const auto after = state_->cache.position(key, to.id);
  ask(request{what, to, in, key, after, {}, again},
      records_query{{}, 0, 0, key, after, static_cast<std::uint8_t>(nodes ? 1 : 0)});
}

void dht_node::put(const contact& to, const std::string& key, records_of_key records,
                   unsigned again) {
  record_put out{{}, 0, 0, key, std::move(records), {}};
  for (const auto& what : out.records) add_certificate(out.certificates, what->entry.owner);
  ask(request{kind::put, to, 0, key, 0, {}, again}, std::move(out));
}

void dht_node::put_all(const contact& to, const std::string& key, const records_of_key& records) {
  for (std::size_t i = 0; i < records.size(); i += most_records) {
    const auto end = std::min(records.size(), i + most_records);
    put(to, key,
        {records.begin() + static_cast<std::ptrdiff_t>(i),
         records.begin() + static_cast<std::ptrdiff_t>(end)});
  }
}

dht_node::request dht_node::close(std::uint64_t token, bool answered) {
  auto closed = state_->requests.close(token, now(), answered);
  if (closed.was_last) demonitor(caf::actor_cast<caf::actor_addr>(closed.what.to.address));
  return std::move(closed.what);
}

void dht_node::wait_for_requests() {
  if (const auto delay = state_->requests.next_timer(now())) set_timer(*delay, request_timer);
}

void dht_node::on_request_timer() {
  auto& requests = state_->requests;
  if (!requests.timer_fired(now())) return;
  while (const auto token = requests.next_slow(now())) on_slow(*token);
  while (const auto token = requests.next_failed(now())) on_failed(*token, false);
  wait_for_requests();
}

void dht_node::on_slow(std::uint64_t token) {
  const auto what = *state_->requests.find(token);
  if (what.what == kind::search) {
    if (const auto it = state_->searches.find(what.search); it != state_->searches.end()) {
      it->second.lookup.slow(what.to);
      pump(what.search);
    }
  } else if (what.what == kind::poll && state_->polls.contains(what.key)) {
    poll(what.key);
  }
}

void dht_node::on_failed(std::uint64_t token, bool dead) {
  if (state_->requests.find(token) == nullptr) return;
  const bool answers_others = !dead && state_->requests.answered_since(token);
  const auto failed = close(token, false);
  if (answers_others && failed.again < most_again &&
      (failed.what == kind::search || failed.what == kind::put)) {
    state_->requests.give_up(token, failed);
    return ask_again(failed);
  }
  if (!answers_others && !failed.to.id.is_zero()) {
    lost(failed.to, dead, failed.asked);
    if (!dead) state_->requests.give_up(token, failed);
  }
  switch (failed.what) {
  case kind::bootstrap:
    return on_bootstrap_failed();
  case kind::search:
    if (const auto it = state_->searches.find(failed.search); it != state_->searches.end()) {
      it->second.lookup.failed(failed.to);
      pump(failed.search);
    }
    return;
  case kind::poll:
    if (state_->polls.failed(failed.key)) poll(failed.key);
    return;
  // The other replicas have the records; the next look-up finds the one that takes this node's
  // place.
  case kind::put:
    return send_again({failed.key});
  case kind::ping:
    return;
  }
}

void dht_node::on_bootstrap_failed() {
  auto& entry = state_->entry;
  if (!entry.failed()) return;
  if (state_->table.size() > 0) {
    // Another node has found this one meanwhile.
    entry.start_search();
    start_search(state_->self.id, {}, goal::join);
  } else if (entry.has_timed_out(now())) {
    joined();
  } else {
    set_timer(entry.retry_delay(), join_timer);
  }
}

void dht_node::ask_again(const request& what) {
  if (what.what == kind::search)
    return query(what.to, what.search, what.key, kind::search, true, what.again + 1);
  // Other owners send their records again themselves.
  auto records = state_->own.living(what.key, here().utc_ns(), most_records);
  if (!records.empty()) put(what.to, what.key, std::move(records), what.again + 1);
}

void dht_node::on_lost(const caf::actor_addr& whom, bool dead) {
  const auto tokens = state_->requests.lost(whom);
  if (dead) state_->entry.died(whom);
  for (const auto token : tokens) on_failed(token, dead);
}

std::optional<dht_node::request> dht_node::take_overdue(std::uint64_t token, bool client) {
  const auto* found = state_->requests.overdue(token);
  if (found == nullptr || !sent_by(found->to.address)) return std::nullopt;
  auto out = state_->requests.take_overdue(token);
  met(out.to, client);
  return out;
}

} // namespace shoal::actors
