// The stream of a primary to its backups, and the changes that wait for acknowledgements.
#include "actors/data/ledger_rows.hpp"
#include "actors/data/shard_replica.hpp"

#include <algorithm>

namespace shoal::actors {

namespace {

using role = replica_role;

constexpr std::int64_t most_stalled_beats = 8;
/// Pieces may be lost when links break. After n further stalls, a host waits for
/// (2^n - 1) * most_stalled_beats.
constexpr unsigned free_stalls = 1;
constexpr unsigned most_doublings = 6;

} // namespace

void shard_replica::in_pieces(
    const std::function<void(std::vector<ledger_row>, bool)>& send) const {
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
      if (f.has_ledger() && !had_ledger) {
        if (auto& stalled = stalls_[f.host].count; stalled > 0) --stalled;
        for (auto& [number, other] : followers_)
          if (number != index_block) tell(number, other, update_kind::changes, {});
      }
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
    // follower.
    note_stall(f.host);
    at = followers_.erase(at);
  }
}

void shard_replica::note_stall(std::size_t host) {
  auto& known = stalls_[host];
  const auto once = most_stalled_beats * config_.beat;
  if (world_.now() > known.until + 100 * once) known.count = 0;
  const auto beyond = known.count > free_stalls ? known.count - free_stalls : 0;
  known.until = world_.now() + ((1 << std::min(beyond, most_doublings)) - 1) * once;
  ++known.count;
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

} // namespace shoal::actors
