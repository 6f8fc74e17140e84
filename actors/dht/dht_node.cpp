#include "actors/dht/dht_node.hpp"
#include "actors/rare.hpp"

#include <algorithm>
#include <utility>

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

namespace shoal::actors {

namespace {

constexpr std::size_t most_remembered = 64;
constexpr std::size_t most_dead = 1024;
constexpr std::size_t most_pings = 1;   // of those who say nothing, in one round of maintenance
constexpr std::size_t most_views = 4096;
constexpr std::size_t most_overdue = 256;
constexpr unsigned most_again = 2;
constexpr auto outdated_patience = std::chrono::seconds(2);
constexpr auto ping_silence = std::chrono::seconds(60);   // of who stands in a newcomer's way
constexpr auto view_lifetime = std::chrono::minutes(2);

bool is(const caf::actor& address, const caf::strong_actor_ptr& sender) {
  return sender && address && caf::actor_cast<caf::strong_actor_ptr>(address) == sender;
}

}  // namespace

dht_node::dht_node(caf::actor_config& config, host& on, dht_config options)
    : protocol_actor(config, on),
      options_(std::move(options)),
      identity_(on.random_stream("dht.identity")),
      draws_(on.random_stream("dht.node")),
      self_{identity_.id(), {}},
      table_(self_.id, options_.bucket_size),
      blacklist_(options_.blacklist_time),
      store_(options_.limits),
      cache_(options_.limits),
      serves_(options_.serves) {}

caf::behavior dht_node::make_behavior() {
  self_.address = address();
  started_ = now();
  next_refresh_ = started_ + options_.refresh;
  unheard_.assign(options_.bootstraps.begin(), options_.bootstraps.end());
  // Only a dead process stays dead; a host that cannot be reached just now may come back.
  set_down_handler([this](caf::scheduled_actor*, caf::down_msg& down) {
    on_lost(down.source, down.reason != caf::exit_reason::unreachable);
  });
  join();
  set_timer(from_seconds(to_seconds(options_.maintenance) * draws_.uniform(0.5, 1.0)), maintenance_timer);
  return {
      // CAF tries one after the other, by comparing names: what comes most often is first.
      [this](query_answer& m) { handles(), on_answer(m); },
      [this](const record_put& m) { handles(), on_put(m); },
      [this](const put_receipt& m) { handles(), on_receipt(m); },
      [this](const records_query& m) { handles(), on_records_query(m); },
      [this](const tick& m) {
        handles();
        switch (m.kind) {
          case request_timer: return on_request_timer();
          case join_timer: return join();
          case flush_timer: {
            flush_planned_ = false;
            std::vector<std::string> keys;
            for (const auto& [key, records] : own_) keys.push_back(key);
            for (const auto& key : keys) write(key);
            return;
          }
          case maintenance_timer: return maintain();
          case probe_timer: return probe(m.token);
          default: return misbehaviour(0, "tick of another actor");
        }
      },
      [this](const lookup& m) { handles(), on_lookup(m); },
      [this](const nodes_query& m) { handles(), on_nodes_query(m); },
      [this](store& m) { handles(), on_store(m); },
      [this](const withdraw& m) { handles(), on_withdraw(m); },
      [this](const serve& m) { handles(), on_serve(m); },
      [this](const introduced& m) { handles(), on_introduced(m); },
  };
}

void dht_node::on_exit() {
  options_ = {};
  self_.address = nullptr;
  table_ = routing_table(self_.id);
  store_ = record_store{};
  cache_ = record_store{};
  own_.clear();
  sets_.clear();
  ranks_.clear();
  waiting_.clear();
  searches_.clear();
  requests_.clear();
  slow_.clear();
  late_.clear();
  overdue_.clear();
  watched_.clear();
  remembered_.clear();
  unheard_.clear();
  probes_.clear();
  protocol_actor::on_exit();
}

// -- for this host's actors -----------------------------------------------------------------------

bool dht_node::is_local() {
  // We sign what we are told to store: only for our own host. Others' messages come from their proxies.
  auto sender = current_sender();
  if (!sender || sender->node() == node()) return true;
  misbehaviour(0, "a node stores and looks up for its own host only");
  return false;
}

void dht_node::on_store(store& what) {
  if (!is_local()) return;
  const auto& limits = options_.limits;
  const auto& entry = what.entry;
  if (what.key.empty() || what.key.size() > limits.max_key_bytes || entry.subkey.size() > limits.max_key_bytes)
    return misbehaviour(0, "store: a key is empty or too long");
  if (entry.value.size() > limits.max_value_bytes || entry.value.is_hollow())
    return misbehaviour(0, "store: the value is too large or has no bytes");
  auto utc = here().utc_ns();
  if (entry.expires_utc_ns <= utc) return;
  if (entry.expires_utc_ns - utc > limits.max_lifetime.count()) return misbehaviour(0, "store: the record lives too long");
  publish(what.key, std::move(what.entry), false);
}

void dht_node::on_withdraw(const withdraw& what) {
  if (!is_local()) return;
  auto known = own_.find(what.key);
  if (known == own_.end()) return;
  auto entry = known->second.find(what.subkey);
  if (entry == known->second.end() || entry->second.what->withdrawn != 0) return;
  record empty;
  empty.subkey = what.subkey;
  empty.expires_utc_ns = entry->second.longest;
  if (empty.expires_utc_ns <= here().utc_ns()) return;
  publish(what.key, std::move(empty), true);
}

void dht_node::publish(const std::string& key, record entry, bool withdrawn) {
  auto subkey = entry.subkey;
  last_version_ = std::max(last_version_ + 1, static_cast<std::uint64_t>(here().utc_ns()));
  auto& records = own_[key];
  const auto before = records.find(subkey);
  // Nobody keeps what lives for longer.
  const auto most = here().utc_ns() + options_.limits.max_lifetime.count();
  const auto longest = before == records.end() ? entry.expires_utc_ns
                                               : std::max(entry.expires_utc_ns, std::min(before->second.longest, most));
  auto made = identity_.sign(key, std::move(entry), last_version_, withdrawn, options_.memo.get());
  records.insert_or_assign(subkey, own_record{std::move(made), true, {}, {}, longest});
  write(key);
}

void dht_node::on_lookup(const lookup& what) {
  if (!is_local()) return;
  if (!what.reply_to) return misbehaviour(0, "lookup: nobody to reply to");
  if (what.key.empty() || what.key.size() > options_.limits.max_key_bytes)
    return misbehaviour(0, "lookup: the key is empty or too long");
  auto& readers = waiting_[what.key];
  if (readers.size() >= most_waiting) return misbehaviour(0, "lookup: too many for one key");
  readers.push_back({what.reply_to, what.token});
  read(what.key);
}

void dht_node::on_introduced(const introduced& what) {
  if (!is_local() || !what.node || what.node == self_.address) return;
  auto& known = options_.bootstraps;
  std::erase(known, what.node);
  std::erase(unheard_, what.node);
  known.push_back(what.node);
  if (known.size() > most_contacts) known.erase(known.begin());
  unheard_.push_back(what.node);
  if (!ready_ && !joining_search_) {
    ++bootstraps_open_;
    return ask(request{kind::bootstrap, {{}, what.node}, 0, {}, 0, {}, 0}, nodes_query{{}, 0, 0, self_.id});
  }
  ask(request{kind::ping, {{}, what.node}, 0, {}, 0, {}, 0}, nodes_query{{}, 0, 0, self_.id});
}

void dht_node::on_serve(const serve& what) {
  if (!is_local()) return;
  const bool now_serves = what.others_reach_us != 0;
  if (std::exchange(serves_, now_serves) == now_serves) return;
  ranks_.clear();
  // We may be a replica of what we read or write, or no longer.
  for (auto& [key, set] : sets_) {
    set.stale = true;
    if (auto own = own_.find(key); own != own_.end())
      for (auto& [subkey, mine] : own->second) mine.pending = true;
  }
  if (!ready_) return;
  flush_soon();
  announce(true);
}

void dht_node::write(const std::string& key) {
  if (!ready_) return;
  auto own = own_.find(key);
  if (own == own_.end()) return;
  if (std::none_of(own->second.begin(), own->second.end(), [](const auto& e) { return e.second.pending; })) return;
  const bool searching = search_of_.contains(key);  // it is written when that is over
  if (const auto* set = here().rare(rare::replicas_forgotten) ? nullptr : replicas_of(key); set != nullptr && !searching) return send_own(key, std::vector(set->members), false);
  auto target = node_id::of_key(key);
  if (table_.size() < options_.bucket_size)
    send_own(key, with_us(target, table_.nearest(target, options_.replicas, [this](const node_id& id) { return blocked(id); })), true);
  if (!searching) start_search(target, key, goal::write);
}

void dht_node::send_own(const std::string& key, const std::vector<contact>& members, bool guess) {
  auto own = own_.find(key);
  if (own == own_.end()) return;
  auto utc = here().utc_ns();
  for (const auto& member : members) {
    std::vector<shared<signed_record>> some;
    auto flush = [&] {
      if (some.empty()) return;
      if (member.id == self_.id)
        keep(store_, key, some);
      else
        put(member, key, some);
      some.clear();
    };
    for (auto& [subkey, mine] : own->second) {
      if (!mine.pending || mine.what->entry.expires_utc_ns <= utc || !mine.told.insert(member.id).second) continue;
      some.push_back(mine.what);
      if (some.size() == most_records) flush();
    }
    flush();
  }
  if (guess) return;
  for (auto& [subkey, mine] : own->second) {
    if (!mine.pending) continue;
    mine.pending = false;
    mine.told.clear();
    mine.sent = now();
  }
}

void dht_node::read(const std::string& key) {
  if (!ready_ || search_of_.contains(key)) return;  // answered when that is over
  if (!waiting_.contains(key)) return;
  if (views_.size() >= most_views && !views_.contains(key)) {
    auto oldest = std::min_element(views_.begin(), views_.end(),
                                   [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    cache_.drop_key(oldest->first);
    views_.erase(oldest);
  }
  auto& known = views_[key];
  known.used = now();
  if (known.fetched != duration::min() && now() - known.fetched < options_.cache_time) return answer(key);
  if (polls_.contains(key)) return;
  const auto* set = here().rare(rare::replicas_forgotten) ? nullptr : replicas_of(key);
  // What the replica that we ask has missed, another one has: all of them are read now and then.
  if (set == nullptr || !set->merged || now() - set->since >= options_.replicas_fresh) {
    start_search(node_id::of_key(key), key, goal::read);
  } else if (holds(*set)) {
    answer(key);
  } else {
    poll(key);
  }
}

void dht_node::answer(const std::string& key) {
  auto readers = waiting_.find(key);
  if (readers == waiting_.end()) return;
  std::vector<const shared<signed_record>*> known;
  auto utc = this->utc();
  auto see = [&](const shared<signed_record>& what) {
    if (what->entry.expires_utc_ns > utc || options_.honours_expired) known.push_back(&what);
  };
  // Each is in order.
  const auto merge_from = [&](std::size_t begin) {
    std::inplace_merge(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(begin), known.end(), [](const auto* a, const auto* b) {
      const auto order = (*a)->entry.subkey.compare((*b)->entry.subkey);
      return order != 0 ? order < 0 : is_newer(**a, **b);
    });
  };
  store_.for_each(key, see);
  if (const auto begin = known.size(); cache_.for_each(key, see), begin > 0 && known.size() > begin) merge_from(begin);
  if (auto own = own_.find(key); own != own_.end()) {
    const auto begin = known.size();
    for (const auto& [subkey, mine] : own->second) see(mine.what);
    merge_from(begin);
  }
  std::vector<shared<record>> records;
  records.reserve(known.size());
  const signed_record* before = nullptr;
  for (const auto* what : known) {
    const auto& each = **what;
    const bool newest = before == nullptr || before->entry.subkey != each.entry.subkey;
    before = &each;
    if (newest && each.withdrawn == 0) records.emplace_back(*what, each.entry);
  }
  if (!records.empty()) {
    const auto first = std::min_element(records.begin(), records.end(), [](const auto& a, const auto& b) { return a->expires_utc_ns < b->expires_utc_ns; });
    here().observe(records_given{(*first)->expires_utc_ns, utc});
  }
  auto all = std::move(readers->second);
  waiting_.erase(readers);
  for (const auto& reader : all) send(reader.reply_to, found{key, reader.token, records});
}

// -- for other nodes ------------------------------------------------------------------------------

bool dht_node::is_valid(const contact& from) {
  if (from.id.is_zero() || from.id == self_.id || !is(from.address, current_sender())) {
    misbehaviour(0, "a DHT message in another's name");
    return false;
  }
  return true;
}

std::vector<contact> dht_node::known_near(const node_id& target, const node_id& asker) const {
  return table_.nearest(target, std::min(options_.bucket_size, most_contacts),
                        [&](const node_id& id) { return id == asker || blocked(id); });
}

void dht_node::on_nodes_query(const nodes_query& what) {
  if (!is_valid(what.from) || here().rare(rare::query_dropped)) return;
  query_answer out{self_, client(), what.token, here().utc_ns(), {}, {}, 0, 0, 0};
  // Of a target that is zero only an answer is wanted: are we alive?
  if (!what.target.is_zero()) out.nearer = known_near(what.target, what.from.id);
  send(what.from.address, std::move(out));
  met(what.from, what.client != 0);
}

void dht_node::on_records_query(const records_query& what) {
  if (!is_valid(what.from) || here().rare(rare::query_dropped)) return;
  if (what.key.empty() || what.key.size() > options_.limits.max_key_bytes)
    return misbehaviour(0, "records_query: the key is empty or too long");
  store_.drop_expired(utc());
  query_answer out{self_, client(), what.token, here().utc_ns(), {}, {}, 0, 0, 0};
  if (what.nodes != 0) out.nearer = known_near(node_id::of_key(what.key), what.from.id);
  auto changes = store_.after(what.key, what.after, most_records);
  out.records = std::move(changes.records);
  out.sequence = changes.sequence;
  out.more = changes.more ? 1 : 0;
  out.others_nearer = others_nearer(what.key);
  send(what.from.address, std::move(out));
  met(what.from, what.client != 0);
}

void dht_node::on_put(const record_put& what) {
  if (!is_valid(what.from)) return;
  if (what.records.empty() || what.records.size() > most_records)
    return misbehaviour(0, "record_put: no records, or too many");
  store_.drop_expired(utc());
  keep(store_, what.key, what.records);
  if (!here().rare(rare::receipt_dropped)) send(what.from.address, put_receipt{client(), what.token, here().utc_ns(), others_nearer(what.key)});
  met(what.from, what.client != 0);
}

void dht_node::keep(record_store& in, const std::string& key, const std::vector<shared<signed_record>>& records) {
  auto utc = this->utc();
  for (const auto& what : records) {
    const auto kept = in.put(key, what, utc, [&] { return is_genuine(key, *what, options_.memo.get()); });
    if (!kept) misbehaviour(0, "record: " + kept.error());
  }
  in.touch(key, now());
}

void dht_node::on_answer(query_answer& what) {
  auto open = requests_.find(what.token);
  const bool late = open == requests_.end();
  if (late) open = overdue_.find(what.token);
  if (late && open == overdue_.end()) return;
  if (!is_valid(what.from) || !is(open->second.to.address, current_sender()) ||
      (!open->second.to.id.is_zero() && open->second.to.id != what.from.id))
    return misbehaviour(0, "query_answer: not from whom was asked");
  if (open->second.what == kind::put || what.nearer.size() > most_contacts || what.records.size() > most_records ||
      (!what.records.empty() && open->second.key.empty()))
    return misbehaviour(0, "query_answer: not what was asked for");
  if (late) {
    if (const auto given_up = overdue(what.token, current_sender(), what.client != 0)) take_records(*given_up, what);
    return;
  }
  std::erase_if(what.nearer, [&](const contact& c) {
    return c.id.is_zero() || !c.address || c.id == self_.id || blocked(c.id) || dead_.contains(c.id);
  });
  auto done = *close(what.token, true);
  met(what.from, what.client != 0);
  votes_.told(what.from.id, what.utc_ns, done.asked, now());
  heard_bootstrap(what.from);
  const auto again = take_records(done, what);
  // Who answered may itself serve nobody, and what it knows is all that leads on.
  if (table_.size() == 0)
    for (const auto& other : what.nearer) {
      remember(other);
      if (done.what == kind::ping) query(other, 0, {}, kind::ping, false);
    }
  switch (done.what) {
    case kind::bootstrap:
      if (bootstraps_open_ > 0) --bootstraps_open_;
      if (!ready_ && !joining_search_) {
        joining_search_ = true;
        start_search(self_.id, {}, goal::join);
      }
      return;
    case kind::search: {
      auto it = searches_.find(done.search);
      if (it != searches_.end()) it->second.lookup.heard(what.from.id, what.nearer);
      if (again) return query(done.to, done.search, done.key, kind::search, false);
      if (it == searches_.end()) return;
      if (it->second.what == goal::read && what.sequence == 0) it->second.lacking.insert(what.from.id);
      it->second.lookup.answered(what.from.id);
      return pump(done.search);
    }
    case kind::poll: {
      if (again) return query(done.to, 0, done.key, kind::poll, false);
      views_[done.key].fetched = now();
      polls_.erase(done.key);
      answer(done.key);
      what.others_nearer != 0 ? outdated(done.key) : confirmed(done.key, done.to.id);
      return;
    }
    case kind::ping:
    case kind::put: return;
  }
}

bool dht_node::take_records(const request& to, const query_answer& what) {
  if (to.key.empty()) return false;
  auto& known = views_[to.key];
  known.used = now();
  if (!what.records.empty()) {
    auto set = sets_.find(to.key);
    auto ours = set != sets_.end() && holds(set->second);
    auto& in = ours ? store_ : cache_;
    in.drop_expired(utc());
    keep(in, to.key, what.records);
  }
  auto& after = known.after[what.from.id];
  const auto again = what.more != 0 && what.sequence > after && what.sequence > to.after;
  after = std::max(after, what.sequence);
  return again;
}

void dht_node::on_receipt(const put_receipt& what) {
  auto open = requests_.find(what.token);
  if (open == requests_.end()) {
    overdue(what.token, current_sender(), what.client != 0);
    return;
  }
  if (open->second.what != kind::put || !is(open->second.to.address, current_sender()))
    return misbehaviour(0, "put_receipt: not from whom was asked");
  auto done = *close(what.token, true);
  what.others_nearer != 0 ? outdated(done.key) : confirmed(done.key, done.to.id);
  met(done.to, what.client != 0);
  votes_.told(done.to.id, what.utc_ns, done.asked, now());
}

// -- requests -------------------------------------------------------------------------------------

template <class Message>
void dht_node::ask(request what, Message message) {
  auto token = next_token_++;
  message.from = self_;
  message.client = client();
  what.asked = now();
  message.token = token;
  auto to = what.to.address;
  if (++watched_[caf::actor_cast<caf::actor_addr>(to)].open == 1) monitor(to);
  requests_.emplace(token, std::move(what));
  slow_.push_back({now() + options_.slow_after, token});
  wait_for_requests();
  send(to, std::move(message));
}

/// One timer for all requests: nearly all are answered long before theirs would be due.
void dht_node::wait_for_requests() {
  for (auto* open : {&slow_, &late_})
    while (!open->empty() && !requests_.contains(open->front().token)) open->pop_front();
  if (slow_.empty() && late_.empty()) return;
  auto next = duration::max();
  for (const auto* open : {&slow_, &late_})
    if (!open->empty()) next = std::min(next, open->front().at);
  if (next_deadline_ && *next_deadline_ <= next) return;
  next_deadline_ = next;
  set_timer(std::max(next - now(), duration{}), request_timer);
}

void dht_node::on_request_timer() {
  if (!next_deadline_ || now() < *next_deadline_) return;   // an earlier one has taken its place
  next_deadline_.reset();
  while (!slow_.empty() && slow_.front().at <= now()) {
    const auto token = slow_.front().token;
    slow_.pop_front();
    on_slow(token);
  }
  while (!late_.empty() && late_.front().at <= now()) {
    const auto token = late_.front().token;
    late_.pop_front();
    on_failed(token, false);
  }
  wait_for_requests();
}

void dht_node::query(const contact& to, std::uint64_t in, const std::string& key, kind what, bool nodes, unsigned again) {
  if (key.empty()) {
    auto found = searches_.find(in);
    auto target = found == searches_.end() ? node_id{} : found->second.lookup.target();
    return ask(request{what, to, in, {}, 0, {}, again}, nodes_query{{}, 0, 0, target});
  }
  std::uint64_t after = 0;
  if (auto known = views_.find(key); known != views_.end())
    if (auto last = known->second.after.find(to.id); last != known->second.after.end()) after = last->second;
  ask(request{what, to, in, key, after, {}, again}, records_query{{}, 0, 0, key, after, static_cast<std::uint8_t>(nodes ? 1 : 0)});
}

void dht_node::put(const contact& to, const std::string& key, std::vector<shared<signed_record>> records, unsigned again) {
  ask(request{kind::put, to, 0, key, 0, {}, again}, record_put{{}, 0, 0, key, std::move(records)});
}

std::optional<dht_node::request> dht_node::close(std::uint64_t token, bool answered) {
  auto found = requests_.find(token);
  if (found == requests_.end()) return std::nullopt;
  auto out = std::move(found->second);
  requests_.erase(found);
  auto address = caf::actor_cast<caf::actor_addr>(out.to.address);
  auto watch = watched_.find(address);
  if (watch == watched_.end()) return out;
  if (answered) watch->second.answered = now();
  if (--watch->second.open == 0) {
    watched_.erase(watch);
    demonitor(address);
  }
  return out;
}

void dht_node::on_slow(std::uint64_t token) {
  auto open = requests_.find(token);
  if (open == requests_.end()) return;
  late_.push_back({now() + std::max(options_.request_timeout - options_.slow_after, duration{}), token});
  auto what = open->second;
  if (what.what == kind::search) {
    if (auto it = searches_.find(what.search); it != searches_.end()) {
      it->second.lookup.slow(what.to.id);
      pump(what.search);
    }
  } else if (what.what == kind::poll && polls_.contains(what.key)) {
    poll(what.key);
  }
}

void dht_node::ask_again(const request& what) {
  switch (what.what) {
    case kind::search: return query(what.to, what.search, what.key, kind::search, true, what.again + 1);
    case kind::put: {
      // What it was given of others, they give it themselves.
      auto own = own_.find(what.key);
      if (own == own_.end()) return;
      const auto utc = here().utc_ns();
      std::vector<shared<signed_record>> records;
      for (const auto& [subkey, mine] : own->second)
        if (mine.what->entry.expires_utc_ns > utc && records.size() < most_records) records.push_back(mine.what);
      if (!records.empty()) put(what.to, what.key, std::move(records), what.again + 1);
      return;
    }
    default: return;
  }
}

void dht_node::on_failed(std::uint64_t token, bool dead) {
  const auto open = requests_.find(token);
  if (open == requests_.end()) return;
  const auto watch = watched_.find(caf::actor_cast<caf::actor_addr>(open->second.to.address));
  const bool answers = !dead && watch != watched_.end() && watch->second.answered >= open->second.asked;
  auto failed = close(token);
  const bool again = answers && failed->again < most_again && (failed->what == kind::search || failed->what == kind::put);
  if (again) {
    overdue_.emplace(token, *failed);
    if (overdue_.size() > most_overdue) overdue_.erase(overdue_.begin());
    return ask_again(*failed);
  }
  if (!answers && !failed->to.id.is_zero()) {
    lost(failed->to.id, dead, failed->asked);
    if (!dead) overdue_.emplace(token, *failed);
    if (overdue_.size() > most_overdue) overdue_.erase(overdue_.begin());
  }
  switch (failed->what) {
    case kind::bootstrap:
      if (--bootstraps_open_ == 0 && !ready_ && !joining_search_) {
        // Somebody may have found us meanwhile.
        if (table_.size() > 0) {
          joining_search_ = true;
          start_search(self_.id, {}, goal::join);
        } else if (now() - started_ >= options_.bootstrap_patience) {
          joined();
        } else {
          set_timer(std::min<duration>(std::chrono::seconds(join_attempts_), std::chrono::seconds(5)), join_timer);
        }
      }
      return;
    case kind::search:
      if (auto it = searches_.find(failed->search); it != searches_.end()) {
        it->second.lookup.failed(failed->to.id);
        pump(failed->search);
      }
      return;
    case kind::poll: return poll_failed(failed->key);
    case kind::put:
      // The others have it; with the next look-up it goes to whoever takes this one's place.
      if (auto own = own_.find(failed->key); own != own_.end()) {
        for (auto& [subkey, mine] : own->second) mine.pending = true;
        flush_soon();
      }
      return;
    case kind::ping: return;
  }
}

void dht_node::on_lost(const caf::actor_addr& whom, bool dead) {
  watched_.erase(whom);
  if (dead) std::erase_if(unheard_, [&](const caf::actor& a) { return caf::actor_cast<caf::actor_addr>(a) == whom; });
  std::vector<std::uint64_t> tokens;
  for (const auto& [token, open] : requests_)
    if (caf::actor_cast<caf::actor_addr>(open.to.address) == whom) tokens.push_back(token);
  for (auto token : tokens) on_failed(token, dead);
}

// -- look-ups -------------------------------------------------------------------------------------

void dht_node::start_search(const node_id& target, const std::string& key, goal what) {
  auto token = next_token_++;
  searches_.emplace(token, search{iterative_lookup(target, options_.replicas, options_.alpha, what == goal::read), key, what, {}});
  if (!key.empty()) search_of_[key] = token;
  auto begin = table_.nearest(target, options_.bucket_size, [this](const node_id& id) { return blocked(id); });
  if (begin.empty()) begin = table_.nearest(target, options_.bucket_size);
  if (begin.empty()) begin.assign(remembered_.begin(), remembered_.end());
  searches_.at(token).lookup.start(begin);
  pump(token);
}

void dht_node::pump(std::uint64_t token) {
  auto it = searches_.find(token);
  if (it == searches_.end()) return;
  auto& s = it->second;
  if (s.lookup.done()) return finish(token);
  while (auto who = s.lookup.next()) query(*who, token, s.what == goal::read ? s.key : std::string{}, kind::search, true);
}

void dht_node::finish(std::uint64_t token) {
  auto node = searches_.extract(token);
  auto& s = node.mapped();
  if (options_.on_lookup) options_.on_lookup({s.lookup.hops(), s.lookup.asked(), !s.key.empty()});
  if (s.what == goal::join) {
    joining_search_ = false;
    return joined();
  }
  if (s.key.empty()) return;
  search_of_.erase(s.key);
  auto& known_set = sets_[s.key];
  auto same = [](const contact& a, const contact& b) { return a.id == b.id; };
  auto named = with_us(s.lookup.target(), s.lookup.nearest_living(options_.replicas));
  auto unchanged = std::equal(named.begin(), named.end(), known_set.members.begin(), known_set.members.end(), same);
  auto merged = s.what == goal::read || (known_set.merged && unchanged);
  known_set = {std::move(named), now(), now(), false, merged};
  auto members = known_set;
  if (s.what == goal::republish) send_kept(s.key, members);
  if (s.what == goal::read) {
    auto& known = views_[s.key];
    known.fetched = now();
    // Of the others we need not know where we stopped.
    std::erase_if(known.after, [&](const auto& e) {
      return std::none_of(members.members.begin(), members.members.end(), [&](const contact& c) { return c.id == e.first; });
    });
    if (holds(members)) {
      // What the others have is now ours to keep.
      std::vector<shared<signed_record>> read;
      cache_.for_each(s.key, [&](const shared<signed_record>& what) { read.push_back(what); });
      if (!read.empty()) keep(store_, s.key, read);
    }
    repair(s);
  }
  auto key = s.key;
  auto values = s.what == goal::read;
  write(key);
  if (values)
    answer(key);
  else
    read(key);
}

void dht_node::repair(const search& done) {
  // The nearest that had nothing: it is new there, or lost a message.
  for (const auto& who : done.lookup.nearest(options_.replicas)) {
    if (!done.lacking.contains(who.id)) continue;
    std::vector<shared<signed_record>> records;
    auto utc = this->utc();
    auto take = [&](const shared<signed_record>& what) {
      if (what->entry.expires_utc_ns > utc && records.size() < most_records) records.push_back(what);
    };
    if (store_.has_key(done.key))
      store_.for_each(done.key, take);
    else
      cache_.for_each(done.key, take);
    if (!records.empty()) put(who, done.key, std::move(records));
    return;
  }
}

void dht_node::poll(const std::string& key) {
  auto set = sets_.find(key);
  if (set == sets_.end()) {
    polls_.erase(key);
    return read(key);
  }
  auto [at, fresh] = polls_.try_emplace(key);
  if (!fresh && at->second.open > 0 && at->second.asked.size() >= set->second.members.size()) return;
  // Each reader begins at a replica of its own, so that all of them have the same work.
  const auto& members = set->second.members;
  auto first = members.empty() ? 0 : static_cast<std::size_t>(self_.id.middle % members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto who = members[(first + i) % members.size()];
    if (who.id == self_.id || at->second.asked.contains(who.id) || blocked(who.id)) continue;
    at->second.asked.insert(who.id);
    ++at->second.open;
    return query(who, 0, key, kind::poll, false);
  }
  if (at->second.open == 0) {
    polls_.erase(at);
    set->second.stale = true;
    start_search(node_id::of_key(key), key, goal::read);
  }
}

void dht_node::poll_failed(const std::string& key) {
  auto at = polls_.find(key);
  if (at == polls_.end()) return;
  if (at->second.open > 0) --at->second.open;
  if (at->second.open == 0) poll(key);
}

const dht_node::replica_set* dht_node::replicas_of(const std::string& key) const {
  auto found = sets_.find(key);
  if (found == sets_.end()) return nullptr;
  const auto& set = found->second;
  if (set.stale || now() - set.confirmed >= options_.replicas_fresh || now() - set.since >= options_.refresh) return nullptr;
  return &set;
}

std::vector<contact> dht_node::with_us(const node_id& target, std::vector<contact> nearest) const {
  if (!serves_) return nearest;
  auto nearer = [&](const contact& a, const contact& b) { return distance(target, a.id) < distance(target, b.id); };
  nearest.insert(std::upper_bound(nearest.begin(), nearest.end(), self_, nearer), self_);
  if (nearest.size() > options_.replicas) nearest.pop_back();
  return nearest;
}

bool dht_node::holds(const replica_set& set) const {
  return std::any_of(set.members.begin(), set.members.end(), [&](const contact& c) { return c.id == self_.id; });
}

void dht_node::send_kept(const std::string& key, const replica_set& set) {
  auto utc = this->utc();
  std::vector<shared<signed_record>> records;
  store_.for_each(key, [&](const shared<signed_record>& what) {
    if (what->entry.expires_utc_ns > utc) records.push_back(what);
  });
  for (const auto& member : set.members) {
    if (member.id == self_.id) continue;
    for (std::size_t i = 0; i < records.size(); i += most_records) {
      auto end = std::min(records.size(), i + most_records);
      put(member, key, {records.begin() + static_cast<std::ptrdiff_t>(i), records.begin() + static_cast<std::ptrdiff_t>(end)});
    }
  }
}

// -- membership -----------------------------------------------------------------------------------

void dht_node::join() {
  if (ready_ || joining_search_) return;
  look_at_addresses();
  if (options_.bootstraps.empty()) return joined();
  ++join_attempts_;
  bootstraps_open_ = options_.bootstraps.size();
  for (const auto& address : options_.bootstraps)
    ask(request{kind::bootstrap, {{}, address}, 0, {}, 0, {}, 0}, nodes_query{{}, 0, 0, self_.id});
}

bool dht_node::knows_nobody() const {
  if (blacklist_.size() < table_.size()) return false;   // most of the time
  return table_.nearest(self_.id, 1, [this](const node_id& id) { return blocked(id); }).empty();
}

void dht_node::look_at_addresses() {
  if (join_attempts_ > 0 && options_.bootstraps_now) options_.bootstraps = options_.bootstraps_now();
  std::erase_if(options_.bootstraps, [&](const caf::actor& a) { return !a || a == self_.address; });
}

void dht_node::joined() {
  if (std::exchange(ready_, true)) return;
  announce(false);
  std::vector<std::string> keys;
  for (const auto& [key, records] : own_) keys.push_back(key);
  for (const auto& key : keys) write(key);
  keys.clear();
  for (const auto& [key, readers] : waiting_) keys.push_back(key);
  for (const auto& key : keys) read(key);
}

void dht_node::handles() {
  if (now() - std::exchange(last_handled_, now()) < options_.request_timeout / 2) return;
  // Nothing was said to us, or we were stopped, and others took us for lost: what we keep may be old, so we do not answer for ourselves. (Whoever
  // asks others for what is new need not read all of them for that; most of the time nothing is said to it.)
  for (auto& [key, set] : sets_)
    if (holds(set)) set.merged = false;
}

// An answer that nobody waits for any more says that its sender is back.
std::optional<dht_node::request> dht_node::overdue(std::uint64_t token, const caf::strong_actor_ptr& sender, bool client) {
  auto found = overdue_.find(token);
  if (found == overdue_.end() || !is(found->second.to.address, sender)) return std::nullopt;
  auto out = std::move(found->second);
  overdue_.erase(found);
  met(out.to, client);
  return out;
}

// Looks up points farther than our neighbours, so that the whole space is known to us and we to it.
void dht_node::announce(bool self) {
  auto prefixes = table_.prefixes();
  if (prefixes.empty()) return;
  if (self) start_search(self_.id, {}, goal::refresh);
  for (unsigned p = 0; p < prefixes.back() && p < node_id::bits; ++p) start_search(random_at(self_.id, p, draws_), {}, goal::refresh);
}

void dht_node::heard_bootstrap(const contact& who) {
  if (std::erase(unheard_, who.address) == 0 || !ready_) return;
  // Until now we were in a network without it.
  start_search(self_.id, {}, goal::refresh);
}

void dht_node::met(const contact& who, bool client) {
  const bool back = blacklist_.alive(who.id);
  if (dead_.erase(who.id) > 0) std::erase(dead_order_, who.id);
  if (client) {
    auto known = table_.nearest(who.id, 1);
    if (known.empty() || known[0].id != who.id || known[0].address != who.address) return;
    table_.remove(who.id);
    return drop_from_sets(who.id);
  }
  switch (table_.seen(who, now())) {
    case routing_table::arrival::added: return newcomer(who);
    case routing_table::arrival::waits: {
      auto rival = table_.stalest(who.id, now(), ping_silence);
      if (!rival) return;
      auto asked = std::any_of(requests_.begin(), requests_.end(),
                               [&](const auto& r) { return r.second.to.id == rival->id; });
      if (!asked) query(*rival, 0, {}, kind::ping, false);
      return;
    }
    case routing_table::arrival::known:
      if (back) newcomer(who);
      return;
    case routing_table::arrival::refused: return;
  }
}

void dht_node::newcomer(const contact& who) {
  if (table_.size() == 1 && ready_) start_search(self_.id, {}, goal::refresh);  // alone until now: let the others know
  std::erase_if(remembered_, [&](const contact& c) { return c.id == who.id; });
  for (auto& [key, set] : sets_) {
    auto target = node_id::of_key(key);
    if (set.members.size() >= options_.replicas &&
        distance(target, set.members.back().id) < distance(target, who.id))
      continue;
    set.stale = true;
    auto own = own_.find(key);
    if (own == own_.end()) continue;
    for (auto& [subkey, mine] : own->second) mine.pending = true;
    flush_soon();
  }
  hand_over(who);
}

void dht_node::hand_over(const contact& to) {
  auto utc = this->utc();
  for (const auto& key : store_.keys()) {
    auto target = node_id::of_key(key);
    auto near = table_.nearest(target, options_.replicas);
    auto among = std::any_of(near.begin(), near.end(), [&](const contact& c) { return c.id == to.id; });
    // One of us is enough: the nearest of those who were here before.
    auto nearest = std::all_of(near.begin(), near.end(), [&](const contact& c) {
      return c.id == to.id || distance(target, self_.id) < distance(target, c.id);
    });
    if (!among || !nearest) continue;
    std::vector<shared<signed_record>> records;
    store_.for_each(key, [&](const shared<signed_record>& what) {
      if (what->entry.expires_utc_ns > utc) records.push_back(what);
    });
    for (std::size_t i = 0; i < records.size(); i += most_records) {
      auto end = std::min(records.size(), i + most_records);
      put(to, key, {records.begin() + static_cast<std::ptrdiff_t>(i), records.begin() + static_cast<std::ptrdiff_t>(end)});
    }
  }
}

void dht_node::lost(const node_id& who, bool dead, duration asked) {
  if (dead) {
    table_.remove(who);
    if (dead_.insert(who).second) dead_order_.push_back(who);
    if (dead_order_.size() > most_dead) {
      dead_.erase(dead_order_.front());
      dead_order_.pop_front();
    }
    std::erase_if(remembered_, [&](const contact& c) { return c.id == who; });
  } else {
    blacklist_.failed(who, asked, now());
    for (const auto& c : table_.nearest(who, 1))
      if (c.id == who) remember(c);
    table_.failed(who);
    probe_later(who);
  }
  drop_from_sets(who);
}

std::uint8_t dht_node::others_nearer(const std::string& key) {
  if (ranks_.size() >= most_views && !ranks_.contains(key)) ranks_.clear();
  auto [at, fresh] = ranks_.try_emplace(key);
  auto& known = at->second;
  if (!fresh && known.changes == table_.changes()) return known.others_nearer;
  const auto target = node_id::of_key(key);
  const auto near = table_.nearest(target, options_.replicas);
  const bool others = !serves_ || (near.size() == options_.replicas && distance(target, near.back().id) < distance(target, self_.id));
  known = {table_.changes(), static_cast<std::uint8_t>(others ? 1 : 0)};
  return known.others_nearer;
}

void dht_node::outdated(const std::string& key) {
  auto set = sets_.find(key);
  // If it is wrong about the others (they died, and it has not heard), a new look-up finds it again: not with each message.
  if (set == sets_.end() || set->second.stale || now() - set->second.since < outdated_patience) return;
  set->second.stale = true;
  auto own = own_.find(key);
  if (own == own_.end()) return;
  for (auto& [subkey, mine] : own->second) mine.pending = true;
  flush_soon();
}

// A nearer node would push the farthest one out first.
void dht_node::confirmed(const std::string& key, const node_id& by) {
  auto found = sets_.find(key);
  if (found == sets_.end()) return;
  auto& members = found->second.members;
  const auto farthest = std::find_if(members.rbegin(), members.rend(), [&](const contact& c) { return c.id != self_.id; });
  if (farthest != members.rend() && farthest->id == by) found->second.confirmed = now();
}

void dht_node::drop_from_sets(const node_id& who) {
  for (auto& [key, set] : sets_)
    if (std::erase_if(set.members, [&](const contact& c) { return c.id == who; }) > 0) {
      set.stale = true;
      if (auto own = own_.find(key); own != own_.end()) {
        for (auto& [subkey, mine] : own->second) mine.pending = true;
        flush_soon();
      }
    }
}

void dht_node::remember(const contact& who) {
  std::erase_if(remembered_, [&](const contact& c) { return c.id == who.id; });
  remembered_.push_back(who);
  if (remembered_.size() > most_remembered) remembered_.pop_front();
}

void dht_node::probe_later(const node_id& who) {
  const auto remembered = std::any_of(remembered_.begin(), remembered_.end(), [&](const contact& c) { return c.id == who; });
  const auto planned = std::any_of(probes_.begin(), probes_.end(), [&](const auto& p) { return p.second == who; });
  if (!remembered || planned) return;
  const auto token = next_token_++;
  probes_.emplace(token, who);
  set_timer(std::max(blacklist_.until(who) - now(), duration{}), probe_timer, token);
}

void dht_node::probe(std::uint64_t token) {
  auto planned = probes_.extract(token);
  if (planned.empty()) return;
  for (const auto& c : remembered_)
    if (c.id == planned.mapped()) return blocked(c.id) ? probe_later(c.id) : query(c, 0, {}, kind::ping, false);
}

void dht_node::flush_soon() {
  if (std::exchange(flush_planned_, true)) return;
  set_timer(std::chrono::milliseconds(100), flush_timer);
}

void dht_node::maintain() {
  set_timer(options_.maintenance, maintenance_timer);
  store_.drop_expired(utc());
  cache_.drop_expired(utc());
  const auto own_utc = here().utc_ns();
  std::vector<std::pair<std::string, record>> rests;
  for (const auto& [key, mine] : own_)
    for (const auto& [subkey, one] : mine)
      if (one.what->entry.expires_utc_ns <= own_utc && one.longest > own_utc) rests.push_back({key, {subkey, nullptr, {}, one.longest}});
  for (auto& [key, rest] : rests) publish(key, std::move(rest), true);
  for (auto own = own_.begin(); own != own_.end();) {
    std::erase_if(own->second, [&](const auto& e) { return e.second.what->entry.expires_utc_ns <= own_utc; });
    own = own->second.empty() ? own_.erase(own) : std::next(own);
  }
  for (auto v = views_.begin(); v != views_.end();) {
    auto idle = now() - v->second.used > view_lifetime && !waiting_.contains(v->first) && !search_of_.contains(v->first);
    if (idle) cache_.drop_key(v->first);
    v = idle ? views_.erase(v) : std::next(v);
  }
  std::erase_if(sets_, [&](const auto& e) {
    return now() - e.second.since > view_lifetime && !own_.contains(e.first) && !views_.contains(e.first);
  });
  if (!ready_) return;
  std::vector<std::string> due;
  for (auto& [key, mine] : own_)
    for (auto& [subkey, one] : mine)
      if (now() - one.sent >= options_.republish) {
        one.pending = true;
        due.push_back(key);
      }
  for (const auto& key : due) write(key);
  for (const auto& key : store_.keys()) {
    if (now() - store_.touched(key) < options_.republish || search_of_.contains(key)) continue;
    store_.touch(key, now());
    start_search(node_id::of_key(key), key, goal::republish);
  }
  if (!remembered_.empty()) {
    auto again = table_.size() == 0 ? remembered_.size() : 1;
    for (; again > 0; --again) {
      auto who = remembered_[draws_.below(remembered_.size())];
      if (!blocked(who.id)) query(who, 0, {}, kind::ping, false);
    }
  }
  if (knows_nobody()) {
    const auto before = options_.bootstraps;
    look_at_addresses();
    for (const auto& address : options_.bootstraps)
      if (table_.size() == 0 || std::find(before.begin(), before.end(), address) == before.end())
        ask(request{kind::ping, {{}, address}, 0, {}, 0, {}, 0}, nodes_query{{}, 0, 0, self_.id});
  }
  if (!unheard_.empty()) {
    unheard_.push_back(unheard_.front());
    unheard_.pop_front();
    if (table_.size() > 0) ask(request{kind::ping, {{}, unheard_.front()}, 0, {}, 0, {}, 0}, nodes_query{{}, 0, 0, self_.id});
  }
  // Who is asked little would name the dead to others for long. That costs who asks them a round trip, once; asking all that are
  // silent every minute was a fifth of all that a quiet swarm of 30 said.
  for (const auto& who : table_.silent(most_pings, now(), 3 * options_.refresh))
    if (!blocked(who.id)) query(who, 0, {}, kind::ping, false);
  if (now() >= next_refresh_) {
    next_refresh_ = now() + options_.refresh;
    if (auto prefixes = table_.prefixes(); !prefixes.empty())
      start_search(random_at(self_.id, prefixes[draws_.below(prefixes.size())], draws_), {}, goal::refresh);
  }
}

}  // namespace shoal::actors
