// DHT node: writes, reads, and the look-ups that find replicas. The rules are in dht_node.hpp.
#include "actors/dht/dht_node.hpp"
#include "actors/dht/merge_records.hpp"
#include "actors/dht/observations.hpp"
#include "actors/failpoints.hpp"
#include "actors/trust/identity.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace shoal::actors {

const replica_set* dht_node::current_replicas(const std::string& key) {
  return here().failpoint(failpoint::replicas_forgotten) ? nullptr
                                                         : state_->sets.current(key, now());
}

// -- writes ---------------------------------------------------------------------------------------

void dht_node::write(const std::string& key) {
  if (!state_->entry.has_joined() || !state_->own.has_pending(key)) return;
  const bool searching = state_->search_of.contains(key); // finish() writes
  const auto* set = current_replicas(key);
  if (set != nullptr && !searching) return send_own(key, set->members, false);
  const auto target = node_id::of_key(key);
  const auto& table = state_->table;
  if (table.size() < state_->options.bucket_size) {
    const auto known = table.nearest(target, state_->options.replicas,
                                     [this](const contact& c) { return is_left_alone(c); });
    send_own(key, with_us(target, known), true);
  }
  if (!searching) start_search(target, key, goal::write);
}

void dht_node::write_all() {
  for (const auto& key : state_->own.keys()) write(key);
}

void dht_node::send_own(const std::string& key, const std::vector<contact>& members, bool guess) {
  const auto utc = here().utc_ns();
  for (const auto& member : members) {
    auto records = state_->own.take_unsent(key, member.id, utc);
    if (records.empty()) continue;
    if (member.id == state_->self.id)
      keep(state_->store, key, records);
    else if (records.size() <= most_records)
      put(member, key, std::move(records));
    else
      put_all(member, key, records);
  }
  if (!guess) state_->own.written(key, now());
}

void dht_node::send_again(const std::vector<std::string>& keys) {
  for (const auto& key : keys)
    if (state_->own.mark_pending(key)) flush_soon();
}

void dht_node::flush_soon() {
  if (std::exchange(state_->flush_planned, true)) return;
  set_timer(std::chrono::milliseconds(100), flush_timer);
}

// -- reads ----------------------------------------------------------------------------------------

void dht_node::read(const std::string& key) {
  if (!state_->entry.has_joined() || state_->search_of.contains(key)) return; // finish() answers
  if (!state_->waiting.contains(key)) return;
  if (state_->cache.read(key, now(), state_->options.cache_time)) return answer(key);
  if (state_->polls.contains(key)) return;
  const auto* set = current_replicas(key);
  // All replicas are read from time to time, because each may have records that another one missed.
  if (set == nullptr || !set->merged || now() - set->since >= state_->options.replicas_fresh)
    start_search(node_id::of_key(key), key, goal::read);
  else if (state_->sets.holds(*set))
    answer(key);
  else
    poll(key);
}

void dht_node::answer(const std::string& key) {
  const auto found_readers = state_->waiting.find(key);
  if (found_readers == state_->waiting.end()) return;
  const auto utc = this->utc();
  auto records = merge_records(key, state_->store, state_->cache.records(), state_->own, utc,
                               state_->options.conduct->gives_expired_records());
  // A hash of each owner's key takes time, and most swarms have no bans.
  if (!state_->options.proofs.empty())
    std::erase_if(records, [this](const auto& each) {
      return here().is_banned(actors::member_of(each->owner));
    });
  if (!records.empty()) {
    const auto first =
        std::min_element(records.begin(), records.end(), [](const auto& a, const auto& b) {
          return a->expires_utc_ns < b->expires_utc_ns;
        });
    here().observe(records_given{(*first)->expires_utc_ns, utc});
  }
  const auto readers = std::move(found_readers->second);
  state_->waiting.erase(found_readers);
  for (const auto& reader : readers) send(reader.reply_to, found{key, reader.token, records});
}

void dht_node::poll(const std::string& key) {
  const auto* set = state_->sets.find(key);
  if (set == nullptr) {
    state_->polls.end(key);
    return read(key);
  }
  const auto step =
      state_->polls.next(key, set->members, [this](const contact& c) { return is_left_alone(c); });
  if (step.ask) return query(*step.ask, 0, key, kind::poll, false);
  if (!step.exhausted) return;
  state_->sets.mark_stale(key);
  start_search(node_id::of_key(key), key, goal::read);
}

// -- look-ups -------------------------------------------------------------------------------------

std::vector<contact> dht_node::with_us(const node_id& target, std::vector<contact> nearest) const {
  if (!state_->serves) return nearest;
  return with_self(target, std::move(nearest), state_->self, state_->options.replicas);
}

void dht_node::start_search(const node_id& target, const std::string& key, goal what) {
  const auto token = state_->next_token++;
  const auto& options = state_->options;
  const std::size_t paths = what == goal::join || what == goal::read ? options.paths : 1;
  auto& lookup =
      state_->searches
          .emplace(token, search{iterative_lookup(target, options.replicas, options.alpha,
                                                  what == goal::read, paths),
                                 key,
                                 what,
                                 {}})
          .first->second.lookup;
  if (!key.empty()) state_->search_of[key] = token;
  const auto& table = state_->table;
  auto begin = table.nearest(target, options.bucket_size, [&](const contact& c) {
    return is_left_alone(c) || is_on_our_side(c, what, target);
  });
  if (begin.empty()) begin = table.nearest(target, options.bucket_size);
  if (begin.empty()) begin.assign(state_->lost.silent().begin(), state_->lost.silent().end());
  lookup.start(begin);
  pump(token);
}

void dht_node::pump(std::uint64_t token) {
  const auto it = state_->searches.find(token);
  if (it == state_->searches.end()) return;
  auto& s = it->second;
  if (s.lookup.done()) return finish(token);
  while (const auto who = s.lookup.next())
    query(*who, token, s.what == goal::read ? s.key : std::string{}, kind::search, true);
}

void dht_node::finish(std::uint64_t token) {
  const auto node = state_->searches.extract(token);
  const auto& done = node.mapped();
  if (state_->options.on_lookup)
    state_->options.on_lookup({done.lookup.hops(), done.lookup.asked(), !done.key.empty()});
  if (done.what == goal::join) return joined();
  if (done.key.empty()) return;
  state_->search_of.erase(done.key);
  auto members =
      with_us(done.lookup.target(), done.lookup.nearest_living(state_->options.replicas));
  const auto& set =
      state_->sets.renew(done.key, std::move(members), done.what == goal::read, now());
  if (done.what == goal::republish) republish(done.key, set);
  if (done.what == goal::read) finish_read(done, set);
  write(done.key);
  if (done.what == goal::read)
    answer(done.key);
  else
    read(done.key);
}

void dht_node::finish_read(const search& done, const replica_set& set) {
  auto& cache = state_->cache;
  cache.fetched(done.key, now());
  cache.keep_positions(done.key, set.members);
  if (state_->sets.holds(set)) {
    // This node has become a replica: it keeps what the other replicas have.
    records_of_key read;
    cache.records().for_each(done.key,
                             [&](const shared<signed_record>& what) { read.push_back(what); });
    if (!read.empty()) keep(state_->store, done.key, read);
  }
  repair(done);
}

dht_node::records_of_key dht_node::living(const record_store& in, const std::string& key,
                                          std::size_t most) {
  const auto utc = this->utc();
  records_of_key out;
  in.for_each(key, [&](const shared<signed_record>& what) {
    if (what->entry.expires_utc_ns > utc && out.size() < most) out.push_back(what);
  });
  return out;
}

void dht_node::republish(const std::string& key, const replica_set& set) {
  const auto records = living(state_->store, key, std::numeric_limits<std::size_t>::max());
  for (const auto& member : set.members)
    if (member.id != state_->self.id) put_all(member, key, records);
}

void dht_node::repair(const search& done) {
  for (const auto& who : done.lookup.nearest(state_->options.replicas)) {
    if (!done.lacking.contains(who.id)) continue;
    const auto& from = state_->store.has_key(done.key) ? state_->store : state_->cache.records();
    auto records = living(from, done.key, most_records);
    if (!records.empty()) put(who, done.key, std::move(records));
    return;
  }
}

} // namespace shoal::actors
