// DHT node: joining, the nodes that it keeps and gives up, and maintenance. The rules are in
// dht_node.hpp.
#include "actors/dht/dht_node.hpp"
#include "actors/trust/evidence.hpp"
#include "actors/trust/identity.hpp"
#include "actors/trust/proof.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

namespace shoal::actors {

namespace {

// The limit for one round of maintenance.
constexpr std::size_t most_pings = 1;
// The silence after which a contact that blocks a newcomer is pinged.
constexpr auto ping_silence = std::chrono::seconds(60);
// The time after which data about an unused key is dropped.
constexpr auto idle_lifetime = std::chrono::minutes(2);

} // namespace

void dht_node::join() {
  auto& entry = state_->entry;
  if (!entry.is_asking()) return;
  entry.refresh(state_->self.address);
  if (entry.addresses().empty()) {
    if (!state_->options.awaits_introduction || entry.has_timed_out(now())) return joined();
    return set_timer(state_->options.bootstrap_timeout, join_timer);
  }
  entry.begin_attempt();
  for (const auto& address : entry.addresses()) ask_address(address, kind::bootstrap);
}

void dht_node::joined() {
  if (!state_->entry.join()) return;
  fill_soon();
  announce();
  write_all();
  std::vector<std::string> keys;
  for (const auto& [key, readers] : state_->waiting) keys.push_back(key);
  for (const auto& key : keys) read(key);
}

void dht_node::fill_soon() {
  state_->fill_pause = state_->options.maintenance / 2;
  state_->next_fill = now() + state_->fill_pause;
}

void dht_node::announce() {
  const auto prefixes = state_->table.prefixes();
  if (prefixes.empty()) return;
  for (unsigned p = 0; p < prefixes.back() && p < node_id::bits; ++p)
    start_search(random_at(state_->self.id, p, state_->draws), {}, goal::refresh);
}

void dht_node::heard_bootstrap(const contact& who) {
  // The node of that address was missing from this node's network until now.
  if (state_->entry.heard(who.address) && state_->entry.has_joined()) look_up_self();
}

// -- other nodes ----------------------------------------------------------------------------------

void dht_node::met(const contact& who, bool client) {
  const bool back = state_->left_alone.alive(who.where());
  state_->lost.heard(who);
  auto& table = state_->table;
  const auto known = table.of_member(who.id.member());
  if (client) {
    if (!known || known->where() != who.where()) return;
    table.remove(who.id);
    return send_again(state_->sets.left(who));
  }
  if (known && known->where() != who.where()) {
    // The member has restarted, and this node did not see its earlier process end.
    state_->lost.died(*known);
    send_again(state_->sets.left(*known));
  }
  switch (table.seen(who, now())) {
  case routing_table::arrival::added:
    return newcomer(who);
  case routing_table::arrival::waits: {
    const auto rival = table.stalest(who.id, now(), ping_silence);
    if (rival && !state_->requests.asks(rival->id)) ping(*rival);
    return;
  }
  case routing_table::arrival::known:
    if (!back) return;
    // Part of the network is back, and this node may know none of it.
    fill_soon();
    return newcomer(who);
  case routing_table::arrival::refused:
    return;
  }
}

void dht_node::newcomer(const contact& who) {
  // This node was alone. The look-up makes it known to others.
  if (state_->table.size() == 1 && state_->entry.has_joined()) look_up_self();
  state_->lost.forget(who.id);
  for (const auto& each : state_->options.proofs)
    std::visit([&](const auto& x) { send(who.address, x); }, each);
  send_again(state_->sets.arrived(who.id));
  hand_over(who);
}

void dht_node::hand_over(const contact& to) {
  for (const auto& key : state_->store.keys()) {
    const auto target = node_id::of_key(key);
    const auto near = state_->table.nearest(target, state_->options.replicas);
    const bool is_replica =
        std::any_of(near.begin(), near.end(), [&](const contact& c) { return c.id == to.id; });
    // One sender is enough: the node nearest to the key, the new node left out.
    const bool nearest = std::all_of(near.begin(), near.end(), [&](const contact& c) {
      return c.id == to.id || distance(target, state_->self.id) < distance(target, c.id);
    });
    if (is_replica && nearest)
      put_all(to, key, living(state_->store, key, std::numeric_limits<std::size_t>::max()));
  }
}

void dht_node::lost(const contact& who, bool dead, duration asked) {
  auto& table = state_->table;
  const auto known = table.of_member(who.id.member());
  const bool in_table = known && known->where() == who.where();
  if (dead)
    state_->lost.died(who);
  else
    state_->left_alone.failed(who.where(), asked, now());
  // Another node may have named this address. It says nothing about the address that the member
  // itself spoke from.
  if (known && !in_table) return;
  if (in_table && dead) table.remove(who.id);
  if (in_table && !dead) {
    state_->lost.remember(who);
    table.failed(who.id);
  }
  if (!dead) probe_later(who);
  send_again(state_->sets.left(who));
}

void dht_node::probe_later(const contact& who) {
  if (!state_->lost.needs_probe(who)) return;
  const auto token = state_->next_token++;
  state_->lost.plan_probe(token, who);
  set_timer(std::max(state_->left_alone.until(who.where()) - now(), duration{}), probe_timer,
            token);
}

void dht_node::probe(std::uint64_t token) {
  const auto who = state_->lost.take_probe(token);
  if (!who) return;
  if (is_left_alone(*who))
    probe_later(*who);
  else
    ping(*who);
}

bool dht_node::knows_nobody() const {
  // The usual case.
  if (state_->left_alone.size() < state_->table.size()) return false;
  return state_->table
      .nearest(state_->self.id, 1, [this](const contact& c) { return is_left_alone(c); })
      .empty();
}

std::uint8_t dht_node::others_nearer(const std::string& key) {
  return !state_->serves || state_->rank.others_nearer(key, state_->table) ? 1 : 0;
}

// -- maintenance ----------------------------------------------------------------------------------

void dht_node::maintain() {
  set_timer(state_->options.maintenance, maintenance_timer);
  drop_expired_records();
  drop_own_records();
  drop_idle_keys();
  drop_unused_certificates();
  judge_again();
  if (!state_->entry.has_joined()) return;
  renew_own_records();
  republish_kept_records();
  ping_silent_nodes();
  ask_current_addresses();
  ask_unheard_address();
  ping_quiet_contacts();
  refresh_table();
  fill_table();
}

void dht_node::drop_expired_records() {
  state_->store.drop_expired(utc());
  state_->cache.records().drop_expired(utc());
}

void dht_node::drop_own_records() {
  const auto utc = here().utc_ns();
  for (auto& [key, withdrawal] : state_->own.outlived(utc))
    publish(key, std::move(withdrawal), true);
  state_->own.drop_expired(utc);
}

void dht_node::drop_idle_keys() {
  const auto& s = *state_;
  state_->cache.drop_idle(now(), idle_lifetime, [&](const std::string& key) {
    return s.waiting.contains(key) || s.search_of.contains(key);
  });
  state_->sets.drop_idle(now(), idle_lifetime, [&](const std::string& key) {
    return s.own.has(key) || s.cache.has(key);
  });
}

void dht_node::drop_unused_certificates() {
  std::erase_if(state_->certificates, [&](const auto& e) {
    return !state_->store.has_records_of(e.first) &&
           !state_->cache.records().has_records_of(e.first);
  });
}

void dht_node::renew_own_records() {
  for (const auto& key : state_->own.renew(now(), state_->options.republish)) write(key);
}

void dht_node::republish_kept_records() {
  auto& store = state_->store;
  for (const auto& key : store.keys()) {
    if (now() - store.touched(key) < state_->options.republish || state_->search_of.contains(key))
      continue;
    store.touch(key, now());
    start_search(node_id::of_key(key), key, goal::republish);
  }
}

void dht_node::ping_silent_nodes() {
  const auto& silent = state_->lost.silent();
  if (silent.empty()) return;
  for (auto pings = state_->table.size() == 0 ? silent.size() : 1; pings > 0; --pings) {
    const auto& who = silent[state_->draws.below(silent.size())];
    if (!is_left_alone(who)) ping(who);
  }
}

void dht_node::ask_current_addresses() {
  if (!knows_nobody()) return;
  auto& entry = state_->entry;
  const auto before = entry.addresses();
  entry.refresh(state_->self.address);
  for (const auto& address : entry.addresses())
    if (state_->table.size() == 0 ||
        std::find(before.begin(), before.end(), address) == before.end())
      ask_address(address, kind::ping);
}

void dht_node::ask_unheard_address() {
  const auto address = state_->entry.next_unheard();
  if (address && state_->table.size() > 0) ask_address(*address, kind::ping);
}

void dht_node::ping_quiet_contacts() {
  // A contact that is seldom asked may be long dead, and this node would still name it to others.
  // Each such name costs its asker a round trip, once. Pinging all silent contacts every minute was
  // a fifth of all messages in a quiet swarm of 30, so only `most_pings` are pinged.
  for (const auto& who : state_->table.silent(most_pings, now(), 6 * state_->options.refresh))
    if (!is_left_alone(who)) ping(who);
}

void dht_node::refresh_table() {
  if (now() < state_->next_refresh) return;
  state_->next_refresh = now() + state_->options.refresh;
  const auto prefixes = state_->table.prefixes();
  if (prefixes.empty()) return;
  const auto prefix = prefixes[state_->draws.below(prefixes.size())];
  start_search(random_at(state_->self.id, prefix, state_->draws), {}, goal::refresh);
}

void dht_node::fill_table() {
  auto& s = *state_;
  if (now() < s.next_fill) return;
  // In most networks some buckets stay empty, because there is no such node.
  s.fill_pause = std::min(2 * s.fill_pause, 6 * s.options.refresh);
  s.next_fill = now() + s.fill_pause;
  // The nodes of a small network know each other.
  if (s.table.size() < s.options.bucket_size) return;
  for (const auto prefix : s.table.gaps())
    start_search(random_at(s.self.id, prefix, s.draws), {}, goal::fill);
}

/// Every host has a DHT node, so the nodes carry proofs. Each one passes a proof on once, to its
/// contacts and to those that come later.
void dht_node::on_proof(const proof& what) {
  auto& later = state_->later;
  // A host hears of one verdict from each of its neighbours.
  if (later.has(what)) return;
  switch (here().ban(what)) {
  case ban_result::wrong:
    return sender_misbehaves("evidence that proves nothing");
  case ban_result::known:
    return;
  case ban_result::later:
    return later.add(what, sender_member());
  case ban_result::banned:
    return pass_on(what);
  }
}

/// Looks at the verdicts whose groups the host did not know.
void dht_node::judge_again() {
  for (const auto& each : state_->later.take()) {
    const auto found = here().ban(each.what);
    if (found == ban_result::later) state_->later.add(each.what, each.from);
    if (found == ban_result::banned) pass_on(each.what);
  }
}

void dht_node::on_evidence(const evidence& what) {
  on_proof(what);
}
void dht_node::on_verdict(const verdict& what) {
  on_proof(what);
}

void dht_node::pass_on(const proof& what) {
  state_->options.proofs.push_back(what);
  auto& table = state_->table;
  if (const auto culprit = table.of_member(member_of(culprit_of(what)))) table.remove(culprit->id);
  for (const auto& other : table.nearest(state_->self.id, table.size()))
    std::visit([&](const auto& x) { send(other.address, x); }, what);
}

} // namespace shoal::actors
