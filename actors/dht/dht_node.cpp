#include "actors/dht/dht_node.hpp"

#include "actors/dht/observations.hpp"
#include "actors/dht/record_rules.hpp"
#include "actors/failpoints.hpp"
#include "actors/trust/evidence.hpp"
#include "actors/trust/identity.hpp"
#include "actors/trust/verdict.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace shoal::actors {

dht_node::state::state(dht_config config, const contact& me, const host& on, rng random,
                       duration now)
    : options(std::move(config)), self(me), draws(random), table(self.id, options.bucket_size),
      left_alone(options.blacklist_time),
      entry(std::move(options.bootstraps), std::move(options.bootstraps_now),
            options.bootstrap_timeout, now),
      requests(options.slow_after, options.request_timeout), store(options.limits),
      cache(options.limits), own(on, options.limits.max_lifetime, options.signatures),
      sets(self.id, {options.replicas, options.replicas_fresh, options.refresh}),
      rank(self.id, options.replicas), polls(self.id), serves(options.serves),
      next_refresh(now + options.refresh) {}

dht_node::dht_node(caf::actor_config& config, host& on, dht_config options)
    : protocol_actor(config, on), options_(std::move(options)) {}

caf::behavior dht_node::make_behavior() {
  state_.emplace(std::move(*options_), contact{id_of(address()), address()}, here(),
                 here().random_stream("dht.node"), now());
  options_.reset();
  // Only a dead process stays dead. A host that is unreachable may come back.
  set_down_handler([this](caf::scheduled_actor*, caf::down_msg& down) {
    on_lost(down.source, down.reason != caf::exit_reason::unreachable);
  });
  join();
  set_timer(from_seconds(to_seconds(state_->options.maintenance) * state_->draws.uniform(0.5, 1.0)),
            maintenance_timer);
  // CAF tries one handler after the other, by comparing names: the most frequent messages are
  // first.
  return {
      [this](query_answer& m) {
        note_activity();
        on_answer(m);
      },
      [this](const record_put& m) {
        note_activity();
        on_put(m);
      },
      [this](const put_receipt& m) {
        note_activity();
        on_receipt(m);
      },
      [this](const records_query& m) {
        note_activity();
        on_records_query(m);
      },
      [this](const tick& m) {
        note_activity();
        on_tick(m);
      },
      [this](const lookup& m) {
        note_activity();
        on_lookup(m);
      },
      [this](const nodes_query& m) {
        note_activity();
        on_nodes_query(m);
      },
      [this](store& m) {
        note_activity();
        on_store(m);
      },
      [this](const withdraw& m) {
        note_activity();
        on_withdraw(m);
      },
      [this](const serve& m) {
        note_activity();
        on_serve(m);
      },
      [this](const introduced& m) {
        note_activity();
        on_introduced(m);
      },
      [this](const link_lost& m) {
        note_activity();
        on_link_lost(m);
      },
      [this](const evidence& m) { on_evidence(m); },
      [this](const verdict& m) { on_verdict(m); },
  };
}

void dht_node::on_exit() {
  options_.reset();
  state_.reset();
  protocol_actor::on_exit();
}

void dht_node::on_tick(const tick& what) {
  switch (what.kind) {
  case request_timer:
    return on_request_timer();
  case join_timer:
    return join();
  case flush_timer:
    state_->flush_planned = false;
    return write_all();
  case maintenance_timer:
    return maintain();
  case probe_timer:
    return probe(what.token);
  default:
    return sender_misbehaves("tick of another actor");
  }
}

void dht_node::note_activity() {
  const auto before = std::exchange(state_->last_handled, now());
  if (now() - before < state_->options.request_timeout / 2) return;
  // This node was paused, or received nothing and the other nodes took it for lost. Its records may
  // be old, so it does not answer from them alone. The sets of other replicas stay merged: a node
  // that only reads a key often receives nothing for long.
  state_->sets.missed_messages();
}

// -- messages of this host's actors ---------------------------------------------------------------

bool dht_node::is_local() {
  // This node signs whatever it is told to store, so it takes orders from its own host only.
  // Messages of other hosts come from their proxies.
  const auto& sender = current_sender();
  if (!sender || sender->node() == node()) return true;
  sender_misbehaves("a node stores and looks up for its own host only");
  return false;
}

void dht_node::on_store(store& what) {
  if (!is_local()) return;
  const auto& limits = state_->options.limits;
  auto& entry = what.entry;
  if (what.key.empty() || what.key.size() > limits.max_key_bytes ||
      entry.subkey.size() > limits.max_key_bytes)
    return sender_misbehaves("store: a key is empty or too long");
  if (entry.value.size() > limits.max_value_bytes || entry.value.is_size_only())
    return sender_misbehaves("store: the value is too large or has no bytes");
  if (entry.address && id_of(entry.address) != state_->self.id)
    return sender_misbehaves("store: the address is another host's");
  const auto utc = here().utc_ns();
  if (entry.expires_utc_ns <= utc) return;
  if (entry.expires_utc_ns - utc > limits.max_lifetime.count())
    return sender_misbehaves("store: the record lives too long");
  // A slow swarm asks for more than the kind of key allows; its owner renews the record.
  const auto longest = rule_of(what.key).max_lifetime;
  entry.expires_utc_ns = std::min(entry.expires_utc_ns, utc + longest.count());
  publish(what.key, std::move(what.entry), false);
}

void dht_node::on_withdraw(const withdraw& what) {
  if (!is_local()) return;
  const auto until = state_->own.withdrawal_until(what.key, what.subkey, here().utc_ns());
  if (until != 0) publish(what.key, {what.subkey, nullptr, {}, until}, true);
}

void dht_node::publish(const std::string& key, record entry, bool withdrawn) {
  state_->own.publish(key, std::move(entry), withdrawn, here().utc_ns());
  write(key);
}

void dht_node::on_lookup(const lookup& what) {
  if (!is_local()) return;
  if (!what.reply_to) return sender_misbehaves("lookup: nobody to reply to");
  if (what.key.empty() || what.key.size() > state_->options.limits.max_key_bytes)
    return sender_misbehaves("lookup: the key is empty or too long");
  auto& readers = state_->waiting[what.key];
  if (readers.size() >= most_waiting) return sender_misbehaves("lookup: too many for one key");
  readers.push_back({what.reply_to, what.token});
  read(what.key);
}

void dht_node::on_introduced(const introduced& what) {
  if (!is_local() || !what.node || what.node == state_->self.address) return;
  state_->entry.introduce(what.node, most_contacts);
  ask_address(what.node, state_->entry.is_asking() ? kind::bootstrap : kind::ping);
}

void dht_node::on_link_lost(const link_lost& what) {
  if (!is_local() || !what.node) return;
  const auto known = state_->table.of_member(id_of(what.node).member());
  if (known && known->address == what.node) ping(*known);
}

void dht_node::on_serve(const serve& what) {
  if (!is_local()) return;
  const bool serves = what.others_reach_us != 0;
  if (std::exchange(state_->serves, serves) == serves) return;
  // The node's role for the keys that it reads or writes may have changed.
  for (const auto& key : state_->sets.role_changed()) state_->own.mark_pending(key);
  if (!state_->entry.has_joined()) return;
  flush_soon();
  if (state_->table.size() > 0) look_up_self();
  announce();
}

// -- messages of other nodes ----------------------------------------------------------------------

node_id dht_node::id_of(const caf::actor& address) const {
  if (!address) return {};
  const auto at = caf::actor_cast<caf::strong_actor_ptr>(address);
  const auto member = here().member_of(at);
  return member.is_zero() ? node_id{} : node_id::of_host(member, at->node());
}

bool dht_node::is_valid(const contact& from) {
  const bool ours = from.id.member() == state_->self.id.member();
  if (!from.id.is_zero() && !ours && sent_by(from.address) && from.id == id_of(from.address))
    return true;
  sender_misbehaves("a DHT message in another's name");
  return false;
}

void dht_node::drop_false_contacts(std::vector<contact>& named) const {
  const auto self = state_->self.id.member();
  std::erase_if(named, [&](const contact& c) {
    return c.id.is_zero() || !c.address || c.id.member() == self || is_left_alone(c) ||
           state_->lost.is_dead(c) || c.id != id_of(c.address);
  });
  auto end = named.begin();
  for (auto& c : named) {
    const auto same = [&](const contact& other) { return other.id.member() == c.id.member(); };
    if (std::any_of(named.begin(), end, same)) continue;
    if (&*end != &c) *end = std::move(c);
    ++end;
  }
  named.erase(end, named.end());
}

std::vector<contact> dht_node::known_near(const node_id& target, const node_id& asker) const {
  return state_->table.nearest(target, std::min(state_->options.bucket_size, most_contacts),
                               [&](const contact& c) { return c.id == asker || is_left_alone(c); });
}

void dht_node::on_nodes_query(const nodes_query& what) {
  if (!is_valid(what.from) || here().failpoint(failpoint::query_dropped)) return;
  query_answer out{state_->self, client(), what.token, here().utc_ns(), {}, {}, 0, 0, 0, {}};
  // A zero target is a ping: the node answers and looks nothing up.
  if (!what.target.is_zero()) out.nearer = known_near(what.target, what.from.id);
  send(what.from.address, std::move(out));
  met(what.from, what.client != 0);
}

void dht_node::on_records_query(const records_query& what) {
  if (!is_valid(what.from) || here().failpoint(failpoint::query_dropped)) return;
  if (what.key.empty() || what.key.size() > state_->options.limits.max_key_bytes)
    return sender_misbehaves("records_query: the key is empty or too long");
  state_->store.drop_expired(utc());
  query_answer out{state_->self, client(), what.token, here().utc_ns(), {}, {}, 0, 0, 0, {}};
  if (what.nodes != 0) out.nearer = known_near(node_id::of_key(what.key), what.from.id);
  auto changes = state_->store.after(what.key, what.after, most_records);
  out.records = std::move(changes.records);
  for (const auto& owner : changes.new_owners) add_certificate(out.certificates, owner);
  out.sequence = changes.sequence;
  out.more = changes.more ? 1 : 0;
  out.others_nearer = others_nearer(what.key);
  send(what.from.address, std::move(out));
  met(what.from, what.client != 0);
}

void dht_node::on_put(const record_put& what) {
  if (!is_valid(what.from)) return;
  if (what.records.empty() || what.records.size() > most_records)
    return sender_misbehaves("record_put: no records, or too many");
  state_->store.drop_expired(utc());
  learn_certificates(what.certificates);
  keep(state_->store, what.key, what.records);
  if (!here().failpoint(failpoint::receipt_dropped))
    send(what.from.address,
         put_receipt{client(), what.token, here().utc_ns(), others_nearer(what.key)});
  met(what.from, what.client != 0);
}

void dht_node::keep(record_store& in, const std::string& key, const records_of_key& records) {
  const auto utc = this->utc();
  for (const auto& what : records) {
    const auto kept = in.put(key, what, utc, [&] { return refusal(key, *what); });
    if (!kept) sender_misbehaves("record: " + kept.error());
  }
  in.touch(key, now());
}

std::string_view dht_node::refusal(const std::string& key, const signed_record& what) {
  const auto& owner = what.entry.owner;
  const auto why = not_genuine(here(), key, what, state_->options.signatures.get());
  if (!why.empty() || here().admits(owner, {})) return why;
  // The handshake has admitted the sender.
  if (sender_member() == member_of(owner)) return {};
  return "the swarm does not admit its owner";
}

void dht_node::learn_certificates(const std::vector<owner_certificate>& certificates) {
  if (certificates.size() > most_records)
    return sender_misbehaves("more certificates than records");
  for (const auto& [owner, certificate] : certificates) {
    if (state_->certificates.contains(owner)) continue;
    if (certificate.empty() || certificate.size() > most_certificate_bytes) {
      sender_misbehaves("a certificate is empty or too long");
      continue;
    }
    // A host that admits the owner already does not look at the certificate. So this node passes
    // such a certificate on only if the owner itself sent it.
    const bool known = here().admits(owner, {});
    if (known ? sender_member() == member_of(owner) : here().admits(owner, certificate))
      state_->certificates.emplace(owner, certificate);
    else if (!known)
      sender_misbehaves("a certificate that does not admit the owner of a record");
  }
}

void dht_node::add_certificate(std::vector<owner_certificate>& to, const key256& owner) const {
  if (!to.empty() && to.back().owner == owner) return;
  if (owner == here().key()) {
    if (auto mine = here().certificate(); !mine.empty()) to.push_back({owner, std::move(mine)});
  } else if (const auto found = state_->certificates.find(owner);
             found != state_->certificates.end()) {
    if (std::none_of(to.begin(), to.end(), [&](const auto& c) { return c.owner == owner; }))
      to.push_back({owner, found->second});
  }
}

bool dht_node::answers(const request& to, const query_answer& what) {
  if (!is_valid(what.from) || !sent_by(to.to.address) ||
      (!to.to.id.is_zero() && to.to.id != what.from.id)) {
    sender_misbehaves("query_answer: not from whom was asked");
    return false;
  }
  const bool fits = to.what != kind::put && what.nearer.size() <= most_contacts &&
                    what.records.size() <= most_records &&
                    what.certificates.size() <= most_records &&
                    (what.records.empty() || !to.key.empty());
  if (!fits) sender_misbehaves("query_answer: not what was asked for");
  return fits;
}

void dht_node::on_late_answer(const query_answer& what) {
  const auto* given_up = state_->requests.overdue(what.token);
  if (given_up == nullptr || !answers(*given_up, what)) return;
  if (const auto to = take_overdue(what.token, what.client != 0)) take_records(*to, what);
}

void dht_node::on_answer(query_answer& what) {
  const auto* open = state_->requests.find(what.token);
  if (open == nullptr) return on_late_answer(what);
  if (!answers(*open, what)) return;
  drop_false_contacts(what.nearer);
  const auto done = close(what.token, true);
  met(what.from, what.client != 0);
  state_->votes.told(what.from.id.member(), what.utc_ns, done.asked, now());
  heard_bootstrap(what.from);
  const bool again = take_records(done, what);
  // The sender may be a client. Then the nodes that it names are the only way into the network.
  if (state_->table.size() == 0)
    for (const auto& other : what.nearer) {
      state_->lost.remember(other);
      if (done.what == kind::ping) ping(other);
    }
  switch (done.what) {
  case kind::bootstrap:
    if (!state_->entry.answered()) return;
    if (!state_->options.awaits_introduction) return start_search(state_->self.id, {}, goal::join);
    // The host's readers have waited for the introduction, and read from this node at once.
    joined();
    return look_up_self();
  case kind::search: {
    const auto it = state_->searches.find(done.search);
    if (it != state_->searches.end()) {
      auto& [lookup, key, why, lacking] = it->second;
      std::erase_if(what.nearer, [&, of = why, &target = lookup.target()](const contact& c) {
        return is_on_our_side(c, of, target);
      });
      lookup.heard(done.to, what.nearer);
    }
    if (again) return query(done.to, done.search, done.key, kind::search, false);
    if (it == state_->searches.end()) return;
    if (it->second.what == goal::read && what.sequence == 0)
      it->second.lacking.insert(what.from.id);
    it->second.lookup.answered(done.to);
    return pump(done.search);
  }
  case kind::poll:
    if (again) return query(done.to, 0, done.key, kind::poll, false);
    state_->cache.fetched(done.key, now());
    state_->polls.end(done.key);
    answer(done.key);
    return on_rank(done, what.others_nearer);
  case kind::ping:
  case kind::put:
    return;
  }
}

bool dht_node::take_records(const request& to, const query_answer& what) {
  if (to.key.empty()) return false;
  auto& cache = state_->cache;
  cache.used(to.key, now());
  if (!what.records.empty()) {
    learn_certificates(what.certificates);
    auto& in = state_->sets.holds(to.key) ? state_->store : cache.records();
    in.drop_expired(utc());
    keep(in, to.key, what.records);
  }
  const bool further = cache.advance(to.key, what.from.id, what.sequence);
  return what.more != 0 && further && what.sequence > to.after;
}

void dht_node::on_receipt(const put_receipt& what) {
  const auto* open = state_->requests.find(what.token);
  if (open == nullptr) {
    take_overdue(what.token, what.client != 0);
    return;
  }
  if (open->what != kind::put || !sent_by(open->to.address))
    return sender_misbehaves("put_receipt: not from whom was asked");
  const auto done = close(what.token, true);
  on_rank(done, what.others_nearer);
  met(done.to, what.client != 0);
  state_->votes.told(done.to.id.member(), what.utc_ns, done.asked, now());
}

void dht_node::on_rank(const request& done, std::uint8_t others_nearer) {
  if (others_nearer == 0)
    state_->sets.confirmed(done.key, done.to.id, now());
  else if (state_->sets.denied(done.key, now()))
    send_again({done.key});
}

} // namespace shoal::actors
