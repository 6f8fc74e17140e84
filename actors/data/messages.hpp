// Messages of data streaming: between peers and the data shard, and between the replicas of a data
// shard.
#pragma once

#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "actors/payload_inspect.hpp"
#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <vector>

namespace shoal::actors {

// Messages between peers and the data shard.

/// Asks the shard for up to `credit` more samples, and renews the leases in `held`.
struct sample_request {
  caf::actor reply_to; ///< on the sender's host
  std::uint32_t credit = 0;
  /// The leases that the peer believes to hold. Only these are renewed.
  std::vector<sample_range> held;
  SHOAL_MESSAGE(sample_request, x.reply_to, x.credit, x.held)
};

/// The samples of `range`, of `data.size() / range.count` bytes each, leased to the receiver.
struct samples {
  sample_range range;
  payload data;
  SHOAL_MESSAGE(samples, x.range, x.data)
};

/// `samples` of a run with a fixed corpus. `proof`: the digests of corpus_root::has(), of 32 bytes
/// each.
struct proven_samples {
  sample_range range;
  payload data;
  payload proof;
  SHOAL_MESSAGE(proven_samples, x.range, x.data, x.proof)
};

/// Leased samples that the sender will not use.
struct samples_returned {
  std::vector<sample_range> ranges;
  SHOAL_MESSAGE(samples_returned, x.ranges)
};

/// The samples of one member of a finished round.
struct commit_entry {
  peer_id peer = 0;
  std::vector<sample_range> ranges;
  std::uint32_t parts_included = 0; ///< the number of parts that hold its gradient
  SHOAL_MESSAGE(commit_entry, x.peer, x.ranges, x.parts_included)
};

/// Every member of a finished round sends a commit for itself and for members that may be dead. It
/// repeats the commit until commit_received arrives, so the same commit may arrive several times.
struct commit {
  std::uint64_t epoch = 0; ///< epoch at which the round's gradients were computed, from 0
  group_id group;
  std::uint32_t parts_total = 0;
  std::vector<commit_entry> entries;
  SHOAL_MESSAGE(commit, x.epoch, x.group, x.parts_total, x.entries)
};

/// The shard has handled a commit of this round from the receiver, whether it was accepted or
/// refused.
struct commit_received {
  group_id group;
  SHOAL_MESSAGE(commit_received, x.group)
};

/// The shard took expired leases back: the peer must not use these samples any more.
struct lease_lost {
  std::vector<sample_range> ranges;
  SHOAL_MESSAGE(lease_lost, x.ranges)
};

/// Asks for copies of samples that the sender computes again (actors/training/auditor.hpp). They
/// are not leased to it.
struct copies_wanted {
  caf::actor reply_to; ///< on the sender's host
  std::vector<sample_range> ranges;
  SHOAL_MESSAGE(copies_wanted, x.reply_to, x.ranges)
};

/// Copies of the samples of `range`, of `data.size() / range.count` bytes each.
struct sample_copies {
  sample_range range;
  payload data;
  SHOAL_MESSAGE(sample_copies, x.range, x.data)
};

/// `sample_copies` of a run with a fixed corpus.
struct proven_copies {
  sample_range range;
  payload data;
  payload proof;
  SHOAL_MESSAGE(proven_copies, x.range, x.data, x.proof)
};

// Messages between the replicas of a data shard.

/// A range of a ledger: an index_state, a former lease or a report. The field `what` is a
/// ledger_row_kind.
struct ledger_row {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint8_t what = 0;
  peer_id peer = 0;
  std::int64_t remaining_ns = 0; ///< remaining time of a lease when it was sent
  std::uint64_t epoch = 0;
  group_id group;
  std::uint32_t parts_included = 0;
  std::uint32_t parts_total = 0;
  SHOAL_MESSAGE(ledger_row, x.first, x.count, x.what, x.peer, x.remaining_ns, x.epoch, x.group,
                x.parts_included, x.parts_total)
};

struct replica_info {
  std::uint64_t index_block = 0;
  caf::actor address;
  SHOAL_MESSAGE(replica_info, x.index_block, x.address)
};

/// The sender is a replica in this role (a replica_role). A backup tells a primary that it has the
/// primary's stream up to `applied`; stream 0 says that it has none. A primary confirms the stream,
/// with the token of the backup's hello.
struct replica_hello {
  replica_info from;
  std::uint8_t role = 0;
  std::uint64_t stream = 0;
  std::uint64_t applied = 0;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(replica_hello, x.from, x.role, x.stream, x.applied, x.token)
};

/// Piece `sequence` of a stream: the whole ledger comes first, then every change. The field `what`
/// is an update_kind.
struct ledger_update {
  replica_info from;
  std::uint64_t stream = 0;
  std::uint64_t sequence = 0;
  std::uint8_t what = 0;
  std::uint64_t reserved = 0; ///< the sender issues no fresh index at or above this one
  std::uint64_t known_index_blocks = 0;
  std::vector<ledger_row> rows;
  std::vector<replica_info> backups; ///< backups of the sender that have its ledger
  SHOAL_MESSAGE(ledger_update, x.from, x.stream, x.sequence, x.what, x.reserved,
                x.known_index_blocks, x.rows, x.backups)
};

/// The sender has all of `stream` up to `sequence`.
struct ledger_received {
  std::uint64_t stream = 0;
  std::uint64_t sequence = 0;
  SHOAL_MESSAGE(ledger_received, x.stream, x.sequence)
};

/// The sender is not the primary replica. The receiver should ask `primary`, which is empty if the
/// sender knows none.
struct not_primary {
  caf::actor primary;
  SHOAL_MESSAGE(not_primary, x.primary)
};

using data_messages = message_list<row<sample_request, traffic::control, scope::remote>,
                                   row<samples, traffic::data, scope::remote>,
                                   row<proven_samples, traffic::data, scope::remote>,
                                   row<samples_returned, traffic::control, scope::remote>,
                                   row<commit_entry, traffic::control, scope::remote>,
                                   row<commit, traffic::control, scope::remote>,
                                   row<commit_received, traffic::control, scope::remote>,
                                   row<lease_lost, traffic::control, scope::remote>,
                                   row<copies_wanted, traffic::control, scope::remote>,
                                   row<sample_copies, traffic::data, scope::remote>,
                                   row<proven_copies, traffic::data, scope::remote>,
                                   row<ledger_row, traffic::control, scope::remote>,
                                   row<replica_info, traffic::control, scope::remote>,
                                   row<replica_hello, traffic::control, scope::remote>,
                                   row<ledger_update, traffic::control, scope::remote>,
                                   row<ledger_received, traffic::control, scope::remote>,
                                   row<not_primary, traffic::control, scope::remote>>;

} // namespace shoal::actors
