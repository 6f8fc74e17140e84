#include "actors/data/shard_replica.hpp"

#include "actors/data/ledger_rows.hpp"
#include "actors/data/sample_ranges.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace shoal::actors {

namespace {

using role = replica_role;
using packed = std::array<std::uint64_t, 2>;

// The first byte of a shard's record.
constexpr std::byte alone{0}, has_replicas{1};

caf::actor_addr address_of(const caf::actor& whom) {
  return caf::actor_cast<caf::actor_addr>(whom);
}

caf::strong_actor_ptr strong(const caf::actor& whom) {
  return caf::actor_cast<caf::strong_actor_ptr>(whom);
}

constexpr std::int64_t most_stalled_beats = 8;
/// A follower that has stalled n times waits for (2^n - 1) * most_stalled_beats.
constexpr unsigned most_doublings = 6;
/// Replicas that were found and have not followed yet, in units of the number of replicas.
constexpr std::size_t most_known = 16;
/// Rows of one message. A message of a correct replica has fewer, because it is cut.
constexpr std::size_t most_rows = std::size_t{1} << 16;
/// Rows of a whole ledger that arrives: about as many as fit into 1 GiB.
constexpr std::size_t most_ledger_rows = std::size_t{1} << 23;

/// The last index_block whose indices fit into 64 bits.
constexpr std::uint64_t last_index_block =
    std::numeric_limits<std::uint64_t>::max() / index_block_size - 1;

} // namespace

payload shard_record::pack() const {
  if (!replica && certificate.empty()) return {};
  std::vector<std::byte> bytes{replica ? has_replicas : alone};
  const auto add = [&bytes](const void* from, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + size);
  };
  if (replica) {
    const packed words{replica->index_block, static_cast<std::uint64_t>(replica->role)};
    add(words.data(), sizeof words);
  }
  add(certificate.data(), certificate.size());
  return payload{std::move(bytes)};
}

std::optional<shard_record> shard_record::unpack(const payload& from) {
  shard_record out;
  if (from.is_size_only()) return std::nullopt;
  if (from.size() == 0) return out;
  auto bytes = from.bytes();
  if (bytes[0] != alone && bytes[0] != has_replicas) return std::nullopt;
  const bool with_replica = bytes[0] == has_replicas;
  bytes = bytes.subspan(1);
  if (with_replica) {
    packed words;
    if (bytes.size() < sizeof words) return std::nullopt;
    std::memcpy(words.data(), bytes.data(), sizeof words);
    if (words[0] > last_index_block || words[1] > static_cast<std::uint64_t>(role::yielding))
      return std::nullopt;
    out.replica = replica_record{words[0], static_cast<actors::replica_role>(words[1])};
    bytes = bytes.subspan(sizeof words);
  }
  out.certificate.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

shard_replica::shard_replica(io& world, replica_config config, sample_ledger& ledger)
    : world_(world), config_(config), ledger_(ledger) {}

void shard_replica::start() {
  reserved_ = replicated_reservation_ = ledger_.next();
  ledger_.know_index_blocks(std::max<std::uint64_t>(config_.replicas, ledger_.index_block()));
  seeking_since_ = world_.now();
  if (ledger_.index_block() > 0) return;
  turn(role::primary);
}

void shard_replica::clear() {
  followers_.clear();
  waiting_.clear();
  expected_.clear();
  arriving_.clear();
  primary_.reset();
  forget_stream();
  source_ = {};
  other_backups_.clear();
  former_backups_.clear();
  dead_backups_.clear();
  stalls_.clear();
  seekers_.clear();
  dead_.clear();
  known_.clear();
  watched_.clear();
}

caf::actor shard_replica::known_primary() {
  if (primary()) return world_.self();
  return primary_ ? primary_->address : caf::actor{};
}

void shard_replica::turn(replica_role to) {
  if (role_ == to) return;
  role_ = to;
  if (to == role::primary) {
    primary_.reset();
    forget_stream();
    seekers_.clear();
    for (const auto& other : std::exchange(other_backups_, {})) expect(other);
    ledger_.record_changes(true);
    // Backups were told of reservations by the former primary. This replica's own begins here.
    reserved_ = replicated_reservation_ = ledger_.next();
    ledger_.reserve(replicated_reservation_);
  } else if (to != role::backup) {
    ledger_.record_changes(false);
    for (const auto& [index_block, f] : followers_)
      known_.insert_or_assign(address_of(f.address), index_block);
    followers_.clear();
    waiting_.clear();
    expected_.clear();
    arriving_.clear();
  }
  world_.role_changed();
}

// -- seeking and following
// --------------------------------------------------------------------------

void shard_replica::greet(const caf::actor& whom, std::uint64_t stream, std::uint64_t token) {
  if (!whom) return;
  const auto now = static_cast<std::uint64_t>(world_.now().count());
  world_.send(whom, caf::make_message(replica_hello{{ledger_.index_block(), world_.self()},
                                                    static_cast<std::uint8_t>(role_),
                                                    stream,
                                                    order_.taken(),
                                                    primary() ? token : now}));
}

void shard_replica::forget_stream() {
  order_.clear();
  incoming_.reset();
}

void shard_replica::seek() {
  primary_.reset();
  forget_stream();
  seeking_since_ = world_.now();
}

void shard_replica::follow(const replica_info& whom, bool at_once) {
  if (!whom.address || whom.address == world_.self()) return;
  primary_ = whom;
  forget_stream();
  if (watched_.insert(address_of(whom.address)).second) world_.watch(whom.address);
  if (at_once) greet(whom.address);
}

void shard_replica::found(const std::vector<shared<actors::record>>& records) {
  for (const auto& each : records) {
    const auto& r = *each;
    const auto said = shard_record::unpack(r.value);
    if (!said || !said->replica || !r.address || r.address == world_.self() ||
        dead_.contains(address_of(r.address)))
      continue;
    // Every member can store a record here.
    if (!world_.replica_of(strong(r.address), said->certificate)) continue;
    const auto& what = said->replica;
    ledger_.know_index_blocks(what->index_block + 1);
    const bool ours = std::any_of(followers_.begin(), followers_.end(),
                                  [&](const auto& f) { return f.second.address == r.address; });
    if (ours || (role_ != role::primary && (role_ != role::seeking || primary_))) continue;
    if (!known_.contains(address_of(r.address)) && known_.size() >= most_known * config_.replicas)
      continue;
    known_.insert_or_assign(address_of(r.address), what->index_block);
    if (watched_.insert(address_of(r.address)).second) world_.watch(r.address);
    greet(r.address);
  }
}

bool shard_replica::beat() {
  const auto now = world_.now();
  ++beats_;
  switch (role_) {
  case role::primary: {
    drop_stalled();
    end_expectations();
    sweep();
    return followers_.size() + 1 < config_.replicas && beats_ % 2 == 0;
  }
  case role::backup:
    if (primary_) greet(primary_->address, order_.stream());
    return false;
  case role::yielding:
    if (now - yielding_since_ > 2 * config_.detection_time) hand_over();
    return false;
  case role::seeking:
    break;
  }
  if (primary_) {
    greet(primary_->address, order_.stream());
    return false;
  }
  if (now - seeking_since_ < config_.seek_time) return true;
  // Other seeking replicas know as little as this one. The first of them goes on.
  for (const auto& [who, known] : seekers_)
    if (known.index_block < ledger_.index_block() && now - known.heard < 4 * config_.beat)
      return true;
  ledger_.mark_all_before_doubtful();
  turn(role::primary);
  // Each of the unreachable replicas may be the primary.
  for (const auto index_block : std::exchange(unreachable_, {})) diverge_from(index_block);
  world_.ledger_lost(ledger_.index_block() * index_block_size);
  return true;
}

void shard_replica::drop_stalled() {
  // A follower is dropped only after a cut would be noticed. Otherwise this replica would not
  // diverge from one that serves behind a cut.
  const auto most_stalled = std::max(most_stalled_beats, config_.detection_time / config_.beat + 2);
  for (auto at = followers_.begin(); at != followers_.end();) {
    auto& f = at->second;
    f.stalled = f.acked < f.sent && f.acked == f.acked_at_beat ? f.stalled + 1 : 0;
    f.acked_at_beat = f.acked;
    if (f.stalled <= most_stalled) {
      ++at;
      continue;
    }
    // A piece for it was lost, or it does not acknowledge. Its next greeting makes it a new
    // follower, but it must not delay the primary again and again.
    auto& known = stalls_[f.host];
    const auto once = most_stalled * config_.beat;
    if (world_.now() > known.until + 100 * once) known.count = 0;
    known.until = world_.now() + ((1 << std::min(known.count, most_doublings)) - 1) * once;
    ++known.count;
    at = followers_.erase(at);
  }
}

void shard_replica::end_expectations() {
  std::vector<std::uint64_t> overdue;
  for (const auto& [index_block, since] : expected_)
    if (world_.now() - since >= config_.follow_time) overdue.push_back(index_block);
  for (const auto index_block : overdue) {
    // Actions that wait for it must find the ledger diverged.
    expected_.erase(index_block);
    diverge_from(index_block);
  }
}

void shard_replica::on(const not_primary& what, const caf::strong_actor_ptr& sender) {
  if (!world_.replica_of(sender, {}))
    return world_.refused("not_primary: from a host that is no replica");
  const bool by_ours = primary_ && strong(primary_->address) == sender;
  if (role_ != role::backup && role_ != role::seeking) return;
  if (by_ours && (!what.primary || what.primary == world_.self())) {
    // That replica knows no primary and has no ledger; or it waits for this one.
    if (role_ == role::seeking) return what.primary ? seek() : void();
    std::erase_if(other_backups_,
                  [&](const replica_info& other) { return other.address == primary_->address; });
    return succeed(false);
  }
  if (!what.primary || dead_.contains(address_of(what.primary))) return;
  if (!by_ours && (role_ == role::backup || primary_)) return;
  // Two replicas that name each other are asked at most once per beat.
  const bool again = world_.now() - referred_ < config_.beat;
  referred_ = world_.now();
  follow({0, what.primary}, !again);
}

// -- greetings
// --------------------------------------------------------------------------------------

bool shard_replica::is_from_replica(std::string_view kind, const replica_info& from,
                                    const caf::strong_actor_ptr& sender) {
  if (!from.address || strong(from.address) != sender) {
    world_.refused(fmt::format("{}: not from the sender's own address", kind));
    return false;
  }
  if (world_.replica_of(sender, {})) return true;
  world_.refused(fmt::format("{}: from a host that is no replica", kind));
  return false;
}

void shard_replica::on(const replica_hello& what, const caf::strong_actor_ptr& sender) {
  if (!is_from_replica("replica_hello", what.from, sender)) return;
  if (what.from.index_block == ledger_.index_block())
    return world_.refused("replica_hello: from us");
  if (what.from.index_block > last_index_block)
    return world_.refused("replica_hello: no such index block");
  if (what.role > static_cast<std::uint8_t>(role::yielding))
    return world_.refused("replica_hello: unknown role");
  const auto theirs = static_cast<replica_role>(what.role);
  if (theirs != role::primary) unreachable_.erase(what.from.index_block);
  ledger_.know_index_blocks(what.from.index_block + 1);
  dead_.erase(address_of(what.from.address));
  if (role_ == role::primary) {
    if (theirs == role::yielding) return;
    if (theirs == role::primary) {
      // The other primary has served since it lost this one.
      if (followers_.contains(what.from.index_block) || expected_.contains(what.from.index_block))
        diverge_from(what.from.index_block);
      drop_follower(what.from.index_block);
      if (what.from.index_block < ledger_.index_block()) return yield_to(what.from);
      return greet(what.from.address);
    }
    const auto known = followers_.find(what.from.index_block);
    if (known == followers_.end() || known->second.address != what.from.address ||
        known->second.stream != what.stream) {
      // The first pieces may still be under way: a backup greets every beat.
      if (known != followers_.end() && known->second.address == what.from.address &&
          known->second.acked == 0 && known->second.stalled < 2 && what.stream == 0)
        return;
      return new_follower(what.from);
    }
    known->second.heard = world_.now();
    return greet(what.from.address, what.stream, what.token);
  }
  if (theirs == role::primary) {
    if (role_ == role::yielding) {
      // The primary that this one yields to may have yielded itself, and then ignores the ledger.
      if (primary_->address != what.from.address && what.from.index_block < ledger_.index_block() &&
          world_.now() - yielding_since_ > config_.detection_time)
        yield_to(what.from);
      return;
    }
    const bool same = primary_ && primary_->address == what.from.address;
    if (same && what.stream != 0 && what.stream == order_.stream())
      confirmed_ = std::max(confirmed_, duration{static_cast<std::int64_t>(what.token)});
    else if (same)
      greet(what.from.address, order_.stream());
    else if (!primary_)
      follow(what.from);
    return;
  }
  if (theirs == role::seeking && role_ == role::seeking)
    seekers_[address_of(what.from.address)] = {what.from.index_block, world_.now()};
  world_.send(what.from.address, caf::make_message(not_primary{known_primary()}));
}

// -- the stream, as its receiver
// ----------------------------------------------------------------------

void shard_replica::on(const ledger_update& what, const caf::strong_actor_ptr& sender) {
  if (!is_from_replica("ledger_update", what.from, sender)) return;
  if (what.rows.size() > most_rows || what.backups.size() > most_known * config_.replicas)
    return world_.refused("ledger_update: too many rows or backups");
  if (what.from.index_block > last_index_block || what.known_index_blocks > last_index_block + 1 ||
      what.what > static_cast<std::uint8_t>(update_kind::handover))
    return world_.refused("ledger_update: no such index block, or of no kind");
  const auto kind = static_cast<update_kind>(what.what);
  if (kind == update_kind::handover) return on_handover(what);
  // The sender takes this primary for its backup.
  if (role_ == role::primary) return greet(what.from.address);
  // The sender answers this replica's greeting.
  if (role_ == role::seeking && !primary_ && what.sequence == 1) {
    primary_ = what.from;
    if (watched_.insert(address_of(what.from.address)).second) world_.watch(what.from.address);
  }
  if (role_ == role::yielding || !primary_ || primary_->address != what.from.address) return;
  order_.add(what, [this](const ledger_update& piece, bool begins) {
    if (begins) {
      incoming_.emplace(ledger_.lease_time());
      incoming_rows_ = 0;
    }
    return take(piece);
  });
}

bool shard_replica::take(const ledger_update& what) {
  std::vector<ledger_row> room;
  const auto rows = config_.conduct->rows_to_apply(what.rows, room);
  if (incoming_ && (incoming_rows_ += rows.size()) > most_ledger_rows) {
    world_.refused("ledger_update: a ledger of that many rows");
    return false;
  }
  if (auto done = apply_rows(rows, incoming_ ? *incoming_ : ledger_, world_.now()); !done) {
    world_.refused("ledger_update: " + done.error());
    return false;
  }
  primary_ = what.from;
  ledger_.know_index_blocks(std::max(what.known_index_blocks, what.from.index_block + 1));
  if (static_cast<update_kind>(what.what) == update_kind::whole && incoming_) {
    ledger_.replace_by(std::move(*incoming_));
    incoming_.reset();
  }
  if (!incoming_) {
    source_ = what.from;
    source_reserved_ = what.reserved;
    other_backups_ = what.backups;
    std::erase_if(other_backups_, [&](const replica_info& other) {
      return !other.address || other.index_block == ledger_.index_block() ||
             other.index_block > last_index_block;
    });
    for (const auto& other : other_backups_)
      if (watched_.insert(address_of(other.address)).second) world_.watch(other.address);
    turn(role::backup);
  }
  world_.send(what.from.address, caf::make_message(ledger_received{what.stream, what.sequence}));
  return true;
}

void shard_replica::lost(const caf::actor_addr& whom, bool dead) {
  if (!whom) return;
  watched_.erase(whom);
  seekers_.erase(whom);
  if (dead) dead_.insert(whom);
  for (auto at = followers_.begin(); at != followers_.end(); ++at)
    if (address_of(at->second.address) == whom) {
      // After a long silence it may have served alone behind a cut before it died.
      const bool diverged = !dead || world_.now() - at->second.heard >= config_.detection_time;
      const auto index_block = at->first;
      // Actions that wait for it must find the ledger diverged, so it is erased first.
      followers_.erase(at);
      if (diverged) diverge_from(index_block);
      sweep();
      break;
    }
  // A found replica that is no backup yet. It serves alone once it has sought long enough.
  if (const auto at = known_.find(whom); at != known_.end()) {
    const auto index_block = at->second;
    known_.erase(at);
    if (!dead && role_ == role::primary)
      diverge_from(index_block);
    else if (!dead)
      unreachable_.insert(index_block);
    expected_.erase(index_block);
  }
  for (const auto& other : std::exchange(other_backups_, {})) {
    if (address_of(other.address) != whom) {
      other_backups_.push_back(other);
      continue;
    }
    if (!dead)
      unreachable_.insert(other.index_block);
    else if (other.index_block < ledger_.index_block())
      dead_backups_[other.index_block] = world_.now();
  }
  sweep();
  if (!primary_ || address_of(primary_->address) != whom) return;
  const bool confirmed_dead = dead && world_.now() - confirmed_ < config_.detection_time;
  switch (role_) {
  case role::primary:
    return;
  case role::seeking:
    return seek();
  case role::backup:
    return succeed(confirmed_dead && address_of(source_.address) == whom);
  case role::yielding:
    ledger_.diverge_from(primary_->index_block);
    turn(role::primary);
    for (const auto& backup : std::exchange(former_backups_, {})) expect(backup);
  }
}

void shard_replica::diverge_from(std::uint64_t index_block) {
  ledger_.diverge_from(index_block);
  replicate();
}

/// The first replica that has the ledger becomes the primary.
void shard_replica::succeed(bool confirmed_dead) {
  const replica_info* first = nullptr;
  for (const auto& other : other_backups_)
    if (other.index_block < ledger_.index_block() &&
        (first == nullptr || other.index_block < first->index_block))
      first = &other;
  if (first == nullptr) return take_over(confirmed_dead);
  const auto next = *first;
  follow(next);
}

void shard_replica::take_over(bool confirmed_dead) {
  // A replica that became a backup since then holds nothing that this one lacks.
  for (const auto& other : other_backups_) unreachable_.erase(other.index_block);
  turn(role::primary);
  ledger_.take_over(source_.index_block, source_reserved_, confirmed_dead, world_.now());
  for (const auto index_block : std::exchange(unreachable_, {})) ledger_.diverge_from(index_block);
  // A backup that died when the primary may already have been dead may have been the primary in
  // between.
  for (const auto& [index_block, when] : std::exchange(dead_backups_, {}))
    if (when >= confirmed_) ledger_.diverge_from(index_block);
  // Reports the reserved indices of the last primary that are unknown here.
  world_.merged({});
  replicate();
  // If the former primary lives, it has to know at once that this one serves, too.
  if (!confirmed_dead) greet(source_.address);
}

// -- two primaries
// ------------------------------------------------------------------------------------

void shard_replica::yield_to(const replica_info& whom) {
  const auto to = whom;
  // Actual and expected followers may serve behind a cut that is not noticed yet.
  if (role_ != role::yielding) {
    former_backups_.clear();
    for (const auto& [index_block, f] : followers_)
      former_backups_.push_back({index_block, f.address});
    for (const auto& [address, index_block] : known_)
      if (expected_.contains(index_block))
        former_backups_.push_back({index_block, caf::actor_cast<caf::actor>(address)});
  }
  turn(role::yielding);
  primary_ = to;
  if (watched_.insert(address_of(to.address)).second) world_.watch(to.address);
  hand_over();
}

template <class Send>
void shard_replica::in_pieces(Send send) const {
  const auto rows = rows_of(ledger_, world_.now());
  std::size_t done = 0;
  do {
    const auto count = std::min(config_.update_rows, rows.size() - done);
    std::vector<ledger_row> piece(rows.begin() + static_cast<std::ptrdiff_t>(done),
                                  rows.begin() + static_cast<std::ptrdiff_t>(done + count));
    done += count;
    send(std::move(piece), done == rows.size());
  } while (done < rows.size());
}

void shard_replica::hand_over() {
  yielding_since_ = world_.now();
  handover_stream_ = next_stream_++;
  handover_pieces_ = 0;
  in_pieces([&](std::vector<ledger_row> rows, bool last) {
    ledger_update out;
    out.from = {ledger_.index_block(), world_.self()};
    out.stream = handover_stream_;
    out.sequence = ++handover_pieces_;
    out.what = static_cast<std::uint8_t>(update_kind::handover);
    out.known_index_blocks = ledger_.known_index_blocks();
    out.rows = std::move(rows);
    out.reserved = last ? 1 : 0;
    if (last) out.backups = former_backups_;
    world_.send(primary_->address, caf::make_message(std::move(out)));
  });
}

void shard_replica::on_handover(const ledger_update& what) {
  if (role_ != role::primary || what.from.index_block <= ledger_.index_block()) return;
  const auto index_block = what.from.index_block;
  const auto host = *world_.replica_of(strong(what.from.address), {});
  // Each host hands over one ledger, so at most `replicas` ledgers are kept.
  std::erase_if(arriving_, [&](const auto& one) {
    return one.second.host == host && one.first != index_block;
  });
  // A repeated hand-over: that primary missed the acknowledgement, and may have served since.
  if (expected_.contains(index_block)) {
    diverge_from(index_block);
    drop_follower(index_block);
  }
  auto at = arriving_.find(index_block);
  if (at == arriving_.end())
    at = arriving_
             .emplace(index_block,
                      arrival{{}, sample_ledger(ledger_.lease_time(), index_block), host, 0})
             .first;
  auto& from = at->second;
  bool whole = false;
  std::vector<replica_info> former_backups;
  std::string wrong;
  from.order.add(what, [&](const ledger_update& piece, bool begins) {
    if (begins) {
      from.ledger = sample_ledger(ledger_.lease_time(), index_block);
      from.rows = 0;
    }
    if ((from.rows += piece.rows.size()) > most_ledger_rows) {
      wrong = "a ledger of that many rows";
      return false;
    }
    if (auto done = apply_rows(piece.rows, from.ledger, world_.now()); !done) {
      wrong = done.error();
      return false;
    }
    from.ledger.know_index_blocks(piece.known_index_blocks);
    whole = piece.reserved != 0;
    former_backups = piece.backups;
    return true;
  });
  if (!wrong.empty()) {
    arriving_.erase(at);
    return world_.refused("ledger_update: " + wrong);
  }
  if (!whole) return;
  const auto stream = from.order.stream(), sequence = from.order.taken();
  const auto merged = ledger_.merge(from.ledger);
  arriving_.erase(at);
  world_.merged(merged);
  replicate();
  // The sender may miss the acknowledgement and continue as a primary.
  expect(what.from);
  for (const auto& backup : former_backups) expect(backup);
  when_replicated([this, to = what.from.address, stream, sequence] {
    world_.send(to, caf::make_message(ledger_received{stream, sequence}));
  });
}

/// Waits for `whom` to follow or to be lost, before claims of peers are refused.
void shard_replica::expect(const replica_info& whom) {
  if (!whom.address || whom.address == world_.self() || whom.index_block == ledger_.index_block() ||
      whom.index_block > last_index_block)
    return;
  if (followers_.contains(whom.index_block) || dead_.contains(address_of(whom.address))) return;
  // Replicas name few others, so this limit is never reached without a lie.
  if (expected_.size() >= most_known * config_.replicas) return;
  known_.insert_or_assign(address_of(whom.address), whom.index_block);
  expected_.emplace(whom.index_block, world_.now());
  if (watched_.insert(address_of(whom.address)).second) world_.watch(whom.address);
}

// -- the stream, as its sender
// ------------------------------------------------------------------------

std::vector<replica_info> shard_replica::followers() const {
  std::vector<replica_info> out;
  for (const auto& [index_block, f] : followers_)
    if (f.has_ledger()) out.push_back({index_block, f.address});
  return out;
}

void shard_replica::new_follower(const replica_info& who) {
  const auto host = *world_.replica_of(strong(who.address), {});
  if (const auto stalled = stalls_.find(host);
      stalled != stalls_.end() && world_.now() < stalled->second.until)
    return;
  // An earlier incarnation of that host has ended. Each host has one follower at most.
  for (const auto& [index_block, f] : followers_)
    if (f.host == host && index_block != who.index_block) {
      if (index_block > who.index_block) return;
      lost(address_of(f.address), true);
      break;
    }
  // For the other followers. The new one gets the changes with the whole ledger.
  replicate();
  auto& f = followers_[who.index_block];
  f = {};
  f.address = who.address;
  f.host = host;
  f.heard = world_.now();
  f.stream = next_stream_++;
  if (watched_.insert(address_of(who.address)).second) world_.watch(who.address);
  in_pieces([&](std::vector<ledger_row> rows, bool last) {
    tell(who.index_block, f, last ? update_kind::whole : update_kind::first, std::move(rows));
  });
  f.whole = f.sent;
  expected_.erase(who.index_block);
  sweep();
}

void shard_replica::drop_follower(std::uint64_t index_block) {
  if (followers_.erase(index_block) + expected_.erase(index_block) > 0) sweep();
}

void shard_replica::tell(std::uint64_t, follower& to, update_kind what,
                         std::vector<ledger_row> rows) {
  ledger_update out;
  out.from = {ledger_.index_block(), world_.self()};
  out.stream = to.stream;
  out.sequence = ++to.sent;
  out.what = static_cast<std::uint8_t>(what);
  out.reserved = reserved_;
  out.known_index_blocks = ledger_.known_index_blocks();
  out.rows = std::move(rows);
  out.backups = followers();
  world_.send(to.address, caf::make_message(std::move(out)));
}

void shard_replica::replicate() {
  auto changes = ledger_.take_changes();
  if (changes.empty()) return;
  if (!followers_.empty()) {
    const auto rows = rows_of(changes, world_.now());
    for (auto& [index_block, f] : followers_)
      for (std::size_t done = 0; done < rows.size(); done += most_rows) {
        const auto from = rows.begin() + static_cast<std::ptrdiff_t>(done);
        const auto count = std::min(most_rows, rows.size() - done);
        tell(index_block, f, update_kind::changes,
             std::vector<ledger_row>(from, from + static_cast<std::ptrdiff_t>(count)));
      }
  }
  when_replicated([this, states = std::move(changes.states)] { ledger_.release(states); });
}

void shard_replica::when_replicated(std::function<void()> action) {
  when_acknowledged(std::move(action), {});
}

void shard_replica::when_acknowledged(std::function<void()> action,
                                      std::set<std::uint64_t> expected) {
  waiting w;
  w.expected = std::move(expected);
  for (const auto& [index_block, f] : followers_)
    if (f.acked < f.sent) w.needs[index_block] = {f.stream, f.sent};
  if (w.needs.empty() && w.expected.empty() && waiting_.empty()) return action();
  w.action = std::move(action);
  waiting_.push_back(std::move(w));
}

void shard_replica::when_roles_confirmed(std::function<void()> action) {
  for (auto& [index_block, f] : followers_) tell(index_block, f, update_kind::changes, {});
  std::set<std::uint64_t> expected;
  for (const auto& [index_block, since] : expected_) expected.insert(index_block);
  when_acknowledged(std::move(action), std::move(expected));
}

void shard_replica::want(std::uint64_t count) {
  if (ledger_.next() + count + config_.reserve / 2 <= reserved_) return;
  reserved_ = ledger_.next() + count + config_.reserve;
  for (auto& [index_block, f] : followers_) tell(index_block, f, update_kind::changes, {});
  when_replicated([this, until = reserved_] {
    replicated_reservation_ = std::max(replicated_reservation_, until);
    ledger_.reserve(replicated_reservation_);
    world_.reserved();
  });
}

void shard_replica::on(const ledger_received& what, const caf::strong_actor_ptr& sender) {
  if (!world_.replica_of(sender, {}))
    return world_.refused("ledger_received: from a host that is no replica");
  if (role_ == role::yielding && primary_ && strong(primary_->address) == sender) {
    if (what.stream != handover_stream_ || what.sequence != handover_pieces_) return;
    const auto to = *primary_;
    turn(role::seeking);
    seek();
    return follow(to);
  }
  for (auto& [index_block, f] : followers_)
    if (f.stream == what.stream && strong(f.address) == sender && what.sequence <= f.sent) {
      const bool had_ledger = f.has_ledger();
      f.acked = std::max(f.acked, what.sequence);
      // The others have to know which replica may take over before them, or concurrently.
      if (f.has_ledger() && !had_ledger)
        for (auto& [number, other] : followers_)
          if (number != index_block) tell(number, other, update_kind::changes, {});
      return sweep();
    }
}

void shard_replica::sweep() {
  const auto met = [this](const waiting& w) {
    const auto missing = [this](std::uint64_t index_block) {
      return expected_.contains(index_block);
    };
    return std::none_of(w.expected.begin(), w.expected.end(), missing) &&
           std::all_of(w.needs.begin(), w.needs.end(), [this](const auto& need) {
             const auto f = followers_.find(need.first);
             // A follower that is gone, or that starts again, delays no action.
             return f == followers_.end() || f->second.stream != need.second.first ||
                    f->second.acked >= need.second.second;
           });
  };
  while (!waiting_.empty() && met(waiting_.front())) {
    const auto action = std::move(waiting_.front().action);
    waiting_.pop_front();
    action();
  }
}

} // namespace shoal::actors
