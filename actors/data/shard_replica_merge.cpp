// Two primaries that meet after a cut: the later one hands its ledger over to the earlier one.
#include "actors/data/ledger_rows.hpp"
#include "actors/data/shard_replica.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

namespace {

using role = replica_role;

} // namespace

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

} // namespace shoal::actors
