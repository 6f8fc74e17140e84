#include "actors/data/shard_replica.hpp"

#include "actors/data/ledger_rows.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace shoal::actors {

namespace {

using role = replica_role;

} // namespace

shard_replica::shard_replica(io& world, replica_config config, sample_ledger& ledger)
    : world_(world), config_(config), ledger_(ledger) {}

caf::actor_addr shard_replica::address_of(const caf::actor& whom) {
  return caf::actor_cast<caf::actor_addr>(whom);
}

caf::strong_actor_ptr shard_replica::strong(const caf::actor& whom) {
  return caf::actor_cast<caf::strong_actor_ptr>(whom);
}

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

// -- seeking and following ------------------------------------------------------------------------

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

// -- greetings ------------------------------------------------------------------------------------

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
      if (known != followers_.end() && !known->second.has_ledger()) {
        // The replica starts again before it has the ledger. That may not go on for ever.
        note_stall(known->second.host);
        followers_.erase(known);
        sweep();
      }
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

// -- the stream, as its receiver ------------------------------------------------------------------

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

} // namespace shoal::actors
