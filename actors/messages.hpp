// Every message that actors exchange. Nouns; integers, strings, handles and payloads only: CAF
// 0.17's serializer turns NaN into 1 and hangs on +Inf, so no float or double may be a field.
// `from` names the sending peer for logs; who really sent is what the network says.
//
// Handles in messages are addresses (host::address_of), never raw handles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <caf/actor.hpp>
#include <caf/meta/type_name.hpp>

#include "actors/dht/node_id.hpp"
#include "actors/ids.hpp"
#include "actors/payload_inspect.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/shared.hpp"

namespace caf {
class actor_system_config;
class type_erased_tuple;
}  // namespace caf

namespace shoal::actors {

// Field lists are long; this keeps each inspect() on one line beside its struct.
#define SHOAL_MESSAGE(type, ...)                                                 \
  template <class Inspector>                                                     \
  friend typename Inspector::result_type inspect(Inspector& f, type& x) {        \
    return f(caf::meta::type_name(#type), __VA_ARGS__);                          \
  }

// ---- discovery: what an actor says to the DHT node of its own host ------------------------------

/// A value under (key, subkey) until `expires_utc_ns`; of one owner the last that it stored counts.
struct record {
  std::string subkey;
  caf::actor address;            ///< whom the record is about; may be empty
  payload value;
  std::int64_t expires_utc_ns = 0;
  SHOAL_MESSAGE(record, x.subkey, x.address, x.value, x.expires_utc_ns)
};

struct store {
  std::string key;
  record entry;
  SHOAL_MESSAGE(store, x.key, x.entry)
};

/// Takes a sub-key back before it expires.
struct withdraw {
  std::string key;
  std::string subkey;
  SHOAL_MESSAGE(withdraw, x.key, x.subkey)
};

/// Answered by `found` with the same token; expired records are left out.
struct lookup {
  std::string key;
  caf::actor reply_to;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(lookup, x.key, x.reply_to, x.token)
};

struct found {
  std::string key;
  std::uint64_t token = 0;
  std::vector<shared<record>> records;   ///< ascending by subkey
  SHOAL_MESSAGE(found, x.key, x.token, x.records)
};

/// This node of another host is there: should it be unknown, ask it.
struct introduced {
  caf::actor node;
  SHOAL_MESSAGE(introduced, x.node)
};

/// Others can dial this host, or cannot: what its peer has found out. No answer.
struct serve {
  std::uint8_t others_reach_us = 0;
  SHOAL_MESSAGE(serve, x.others_reach_us)
};

// ---- between DHT nodes: `client` says that the sender cannot be dialled, and is not to be kept --------

/// A node and where it is reached.
struct contact {
  node_id id;
  caf::actor address;
  SHOAL_MESSAGE(contact, x.id, x.address)
};

/// A record as it travels and is kept: actors/dht/signed_record.hpp.
struct signed_record {
  record entry;
  std::uint64_t version = 0;         ///< ascends with everything that the owner stores
  std::uint8_t withdrawn = 0;        ///< the sub-key is empty until the record expires
  key256 owner;                      ///< its public key
  key256 signature_r, signature_s;
  SHOAL_MESSAGE(signed_record, x.entry, x.version, x.withdrawn, x.owner, x.signature_r, x.signature_s)
};

/// Whom do you know that is near to `target`?
struct nodes_query {
  contact from;
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  node_id target;
  SHOAL_MESSAGE(nodes_query, x.from, x.client, x.token, x.target)
};

/// What changed under `key` after the number that you gave last time? And, if asked, who is nearer to it?
struct records_query {
  contact from;
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  std::string key;
  std::uint64_t after = 0;
  std::uint8_t nodes = 0;
  SHOAL_MESSAGE(records_query, x.from, x.client, x.token, x.key, x.after, x.nodes)
};

/// To both queries. `sequence` is what to ask for next time, 0 if there is nothing under the key; `utc_ns` is the sender's clock.
struct query_answer {
  contact from;
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  std::int64_t utc_ns = 0;
  std::vector<contact> nearer;
  std::vector<shared<signed_record>> records;
  std::uint64_t sequence = 0;
  std::uint8_t more = 0;             ///< the answer would have been too large: ask again at once
  std::uint8_t others_nearer = 0;    ///< the sender knows enough nodes nearer to the key that it need not have its records
  SHOAL_MESSAGE(query_answer, x.from, x.client, x.token, x.utc_ns, x.nearer, x.records, x.sequence, x.more, x.others_nearer)
};

/// Keep these, please.
struct record_put {
  contact from;
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  std::string key;
  std::vector<shared<signed_record>> records;
  SHOAL_MESSAGE(record_put, x.from, x.client, x.token, x.key, x.records)
};

struct put_receipt {
  std::uint8_t client = 0;
  std::uint64_t token = 0;
  std::int64_t utc_ns = 0;
  std::uint8_t others_nearer = 0;    ///< as in query_answer
  SHOAL_MESSAGE(put_receipt, x.client, x.token, x.utc_ns, x.others_nearer)
};

// ---- data streaming -----------------------------------------------------------------------------

/// Asks the shard for up to `credit` further samples and renews all of the peer's leases.
struct sample_request {
  peer_id peer = 0;
  caf::actor reply_to;
  std::uint32_t credit = 0;
  std::vector<sample_range> held;  ///< what the peer believes it leases; only these are renewed
  SHOAL_MESSAGE(sample_request, x.peer, x.reply_to, x.credit, x.held)
};

/// Samples first .. first + count - 1, each of `data.size() / count` bytes, leased to the receiver.
struct samples {
  sample_range range;
  payload data;
  SHOAL_MESSAGE(samples, x.range, x.data)
};

/// Leased samples that will not be used by this peer.
struct samples_returned {
  peer_id peer = 0;
  std::vector<sample_range> ranges;
  SHOAL_MESSAGE(samples_returned, x.peer, x.ranges)
};

/// The samples of one member of a finished round.
struct commit_entry {
  peer_id peer = 0;
  std::vector<sample_range> ranges;
  std::uint32_t parts_included = 0;  ///< in how many of the parts its gradient is
  SHOAL_MESSAGE(commit_entry, x.peer, x.ranges, x.parts_included)
};

/// Sent by every member of a finished round, for itself and for members that may be dead, until it is answered with
/// commit_received; the same commit may arrive several times.
struct commit {
  std::uint64_t epoch = 0;           ///< of the round: the epoch that its gradients were computed on, from 0
  group_id group;
  std::uint32_t parts_total = 0;
  std::vector<commit_entry> entries;
  SHOAL_MESSAGE(commit, x.epoch, x.group, x.parts_total, x.entries)
};

/// The shard has a commit of this round from the receiver, good or bad.
struct commit_received {
  group_id group;
  SHOAL_MESSAGE(commit_received, x.group)
};

/// The shard took leases back (they expired): the peer must not use these samples any more.
struct lease_lost {
  std::vector<sample_range> ranges;
  SHOAL_MESSAGE(lease_lost, x.ranges)
};

// ---- between the replicas of a data shard ---------------------------------------------------------

/// A stretch of a ledger: what an index_state, a former lease or a report says of it. `what` is a ledger_row_kind.
struct ledger_row {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint8_t what = 0;
  peer_id peer = 0;
  std::int64_t remaining_ns = 0;     ///< of a lease, when this was sent
  std::uint64_t epoch = 0;
  group_id group;
  std::uint32_t parts_included = 0;
  std::uint32_t parts_total = 0;
  SHOAL_MESSAGE(ledger_row, x.first, x.count, x.what, x.peer, x.remaining_ns, x.epoch, x.group, x.parts_included, x.parts_total)
};

struct replica_info {
  std::uint64_t territory = 0;
  caf::actor address;
  SHOAL_MESSAGE(replica_info, x.territory, x.address)
};

/// I am a replica too, in this role (a replica_role). To a primary: I have your stream up to `applied` (stream 0: nothing of it). From a
/// primary: I go on telling you that stream; with the token of the hello that it answers.
struct replica_hello {
  replica_info from;
  std::uint8_t role = 0;
  std::uint64_t stream = 0;
  std::uint64_t applied = 0;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(replica_hello, x.from, x.role, x.stream, x.applied, x.token)
};

/// The `sequence`-th piece of what the sender tells the receiver: the whole ledger first, then every change. `what` is an update_kind.
struct ledger_update {
  replica_info from;
  std::uint64_t stream = 0;
  std::uint64_t sequence = 0;
  std::uint8_t what = 0;
  std::uint64_t reserved = 0;        ///< the sender issues no index of its own at or above
  std::uint64_t known_territories = 0;
  std::vector<ledger_row> rows;
  std::vector<replica_info> backups; ///< of the sender
  SHOAL_MESSAGE(ledger_update, x.from, x.stream, x.sequence, x.what, x.reserved, x.known_territories, x.rows, x.backups)
};

/// I have all of `stream` up to `sequence`.
struct ledger_received {
  std::uint64_t stream = 0;
  std::uint64_t sequence = 0;
  SHOAL_MESSAGE(ledger_received, x.stream, x.sequence)
};

/// To whoever takes the sender for the primary replica: ask this one, if I know one.
struct not_primary {
  caf::actor primary;
  SHOAL_MESSAGE(not_primary, x.primary)
};

// ---- matchmaking --------------------------------------------------------------------------------

struct member_info {
  peer_id peer = 0;
  caf::actor address;                ///< its group actor
  std::uint64_t weight = 0;          ///< samples in its contribution
  std::uint64_t rate_up = 0;         ///< of its line, bit/s, as it says: they decide its share
  std::uint64_t rate_down = 0;
  std::uint8_t reached = 2;          ///< by whom it can be reached: actors/averaging/round.hpp
  std::uint8_t takes = 1;            ///< 0: it reduces for the others and wants no result
  std::vector<sample_range> samples;
  SHOAL_MESSAGE(member_info, x.peer, x.address, x.weight, x.rate_up, x.rate_down, x.reached, x.takes, x.samples)
};

struct join_request {
  std::uint64_t epoch = 0;
  state_id state;
  std::uint64_t value_count = 0;     ///< length of the vector to average, or of both rounds' vectors
  std::uint8_t codec = 0;            ///< round_codecs::number()
  std::int64_t deadline = 0;         ///< the sender's, should it lead: utc ns
  member_info member;
  SHOAL_MESSAGE(join_request, x.epoch, x.state, x.value_count, x.codec, x.deadline, x.member)
};

struct join_accepted {
  group_id round;                    ///< the leader's name for the coming group
  SHOAL_MESSAGE(join_accepted, x.round)
};

/// `why` is a reason; `suggested` (with its id and deadline) is whom to ask instead, if anybody.
struct join_rejected {
  std::uint8_t why = 0;
  peer_id suggested_peer = 0;
  std::int64_t suggested_deadline = 0;
  caf::actor suggested;
  SHOAL_MESSAGE(join_rejected, x.why, x.suggested_peer, x.suggested_deadline, x.suggested)
};

/// A follower leaves before the round began.
struct join_withdrawn {
  peer_id peer = 0;
  SHOAL_MESSAGE(join_withdrawn, x.peer)
};

/// The group is closed. What the leader decides once for all: boundaries are value indices, member j reduces
/// [boundaries[j], boundaries[j+1]), in chunks of `chunk_bytes` of values (before the codec). Where two rounds follow each other, those of
/// the second one come behind those of the first. Its messages name the group by another id (actors/averaging/group.hpp).
struct group_begun {
  group_id group;
  std::uint64_t epoch = 0;
  state_id state;
  std::vector<member_info> members;
  std::vector<std::uint64_t> boundaries;
  std::uint64_t chunk_bytes = 256 * 1024;
  std::uint8_t codec = 0;            ///< round_codecs::number()
  SHOAL_MESSAGE(group_begun, x.group, x.epoch, x.state, x.members, x.boundaries, x.chunk_bytes, x.codec)
};

/// To every other member of a group: its leader counted on `member`, who had gone elsewhere meanwhile. For
/// that round it is as good as dead.
struct member_declined {
  group_id group;
  std::uint32_t member = 0;
  SHOAL_MESSAGE(member_declined, x.group, x.member)
};

// ---- butterfly all-reduce -----------------------------------------------------------------------

/// Chunks of one part, by number.
struct chunk_range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  SHOAL_MESSAGE(chunk_range, x.first, x.count)
};

/// A piece of `sender`'s values for part `part`, as the codec writes them; `offset` in bytes of values from the part's start.
struct part_chunk {
  group_id group;
  std::uint32_t sender = 0;
  std::uint32_t part = 0;
  std::uint64_t offset = 0;
  payload data;
  SHOAL_MESSAGE(part_chunk, x.group, x.sender, x.part, x.offset, x.data)
};

/// A piece of a finished part: the weighted mean over `senders`, with their total weight.
struct reduced_chunk {
  group_id group;
  std::uint32_t part = 0;
  std::uint64_t offset = 0;
  std::uint64_t weight = 0;
  std::vector<std::uint32_t> senders;  ///< ascending
  payload data;
  SHOAL_MESSAGE(reduced_chunk, x.group, x.part, x.offset, x.weight, x.senders, x.data)
};

/// One chunk arrived: the sender may send another (credit window).
struct chunk_received {
  group_id group;
  std::uint32_t member = 0;          ///< who received it
  std::uint32_t part = 0;
  std::uint8_t reduced = 0;          ///< 0: a part_chunk, 1: a reduced_chunk
  SHOAL_MESSAGE(chunk_received, x.group, x.member, x.part, x.reduced)
};

/// From now on you are to give me `part`: everybody before you in its order is gone for me. I hold
/// these chunks of it already.
struct part_query {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  std::vector<chunk_range> held;
  SHOAL_MESSAGE(part_query, x.group, x.member, x.part, x.held)
};

/// I am going to reduce `part`, since everybody before me in its order is gone for me: say so if you
/// have it, or come to have it, from one of them.
struct part_claim {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  SHOAL_MESSAGE(part_claim, x.group, x.member, x.part)
};

/// To who claimed `part`: I hold all of it.
struct part_answer {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  SHOAL_MESSAGE(part_answer, x.group, x.member, x.part)
};

/// From who claimed `part`: send me these chunks of it, your own values (reduced 0) or finished (1).
struct part_wanted {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  std::uint8_t reduced = 0;
  std::vector<chunk_range> chunks;
  SHOAL_MESSAGE(part_wanted, x.group, x.member, x.part, x.reduced, x.chunks)
};

/// A member's vote: it holds all parts, with these senders in them, and will never hold others.
struct member_ready {
  group_id group;
  std::uint32_t member = 0;
  id128 version;                     ///< hash of the senders of every chunk
  SHOAL_MESSAGE(member_ready, x.group, x.member, x.version)
};

/// A member's round ended and it needs nothing more from the others: well, because the majority of
/// the members voted for `version`, or badly.
struct member_finished {
  group_id group;
  std::uint32_t member = 0;
  std::uint8_t failed = 0;
  id128 version;
  SHOAL_MESSAGE(member_finished, x.group, x.member, x.failed, x.version)
};

// ---- averaging without groups -------------------------------------------------------------------

/// `sender`'s values of the receiver's part, in round `round` of a group that both were given.
struct whole_part {
  std::uint64_t round = 0;
  std::uint32_t sender = 0;
  payload values;                    ///< floats
  SHOAL_MESSAGE(whole_part, x.round, x.sender, x.values)
};

/// The mean of `sender`'s part.
struct whole_mean {
  std::uint64_t round = 0;
  std::uint32_t sender = 0;
  payload values;                    ///< floats
  SHOAL_MESSAGE(whole_mean, x.round, x.sender, x.values)
};

/// Let us both hold the mean of our values.
struct gossip_offer {
  std::uint64_t token = 0;
  payload values;                    ///< floats
  SHOAL_MESSAGE(gossip_offer, x.token, x.values)
};

/// The asked one has moved by `half` towards the asker, who has to move as far towards it; empty: it is waiting itself.
struct gossip_answer {
  std::uint64_t token = 0;
  payload half;                      ///< floats
  SHOAL_MESSAGE(gossip_answer, x.token, x.half)
};

/// A part of what the sender holds: values times weight, then the weight, as doubles.
struct push_share {
  std::uint64_t token = 0;
  payload sums;
  SHOAL_MESSAGE(push_share, x.token, x.sums)
};

struct push_received {
  std::uint64_t token = 0;
  SHOAL_MESSAGE(push_received, x.token)
};

// ---- state sharing ------------------------------------------------------------------------------

// What is shared is an object: a state, named by its id, or a step, named by step_object() of the state before it.

/// Asks for `object`, or, if that is zero, for the state that the asked peer shares. Who offers it keeps it for the asker as long as
/// that asks for chunks or says state_hold. `reserve`: no chunks are asked for yet.
struct state_request {
  id128 object;
  std::uint8_t reserve = 0;
  caf::actor reply_to;
  SHOAL_MESSAGE(state_request, x.object, x.reserve, x.reply_to)
};

/// What a donor has: `size` bytes (parameters, then optimizer state; of a step the averaged gradient), in chunks whose hashes (the
/// first 16 bytes of BLAKE2b-256 each) are in `hashes`. Of a step, `state`, `epoch` and `samples` are those after it.
/// `commits`: what the shard has not answered yet, of rounds that led to it. Whoever takes the state takes these, too: if all members of
/// a round are lost before the shard hears of it, its samples would be used again while the state that they are in lives on.
struct state_offer {
  id128 object;
  std::uint64_t epoch = 0;
  state_id state;
  std::uint64_t step = 0;
  std::uint64_t size = 0;
  std::uint64_t parameter_bytes = 0;
  std::uint64_t samples = 0;         ///< samples in all steps that led to this state
  std::uint64_t chunk_bytes = 0;
  payload hashes;
  std::vector<commit> commits;
  SHOAL_MESSAGE(state_offer, x.object, x.epoch, x.state, x.step, x.size, x.parameter_bytes, x.samples, x.chunk_bytes, x.hashes, x.commits)
};

/// Instead of an offer, or of a chunk to a reserve: `why` is a reason. out_of_sync: it has no such object; busy: it serves as many as
/// it will.
struct state_refused {
  std::uint8_t why = 0;
  SHOAL_MESSAGE(state_refused, x.why)
};

/// Keep the object for me, I am still at it. `done`: I need no chunks of it any more. No answer.
struct state_hold {
  id128 object;
  std::uint8_t done = 0;
  caf::actor reply_to;
  SHOAL_MESSAGE(state_hold, x.object, x.done, x.reply_to)
};

struct state_chunk_request {
  id128 object;
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
  caf::actor reply_to;
  SHOAL_MESSAGE(state_chunk_request, x.object, x.offset, x.count, x.reply_to)
};

/// An empty payload says that the donor does not hold that object any more.
struct state_chunk {
  id128 object;
  std::uint64_t offset = 0;
  payload data;
  SHOAL_MESSAGE(state_chunk, x.object, x.offset, x.data)
};

// ---- reachability -------------------------------------------------------------------------------

/// What do you see me as? And have `third` dial `reply_to`, if there is one.
struct address_query {
  caf::actor reply_to;
  caf::actor third;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(address_query, x.reply_to, x.third, x.token)
};

/// `seen`: the address that the asker's datagrams come from; 0: none come.
struct address_answer {
  std::uint64_t token = 0;
  std::uint64_t seen = 0;
  SHOAL_MESSAGE(address_answer, x.token, x.seen)
};

/// Opens a connection to who can be reached, so that it can reach us. Nobody answers.
struct greeting {
  peer_id peer = 0;
  SHOAL_MESSAGE(greeting, x.peer)
};

/// To a third peer: dial `target` as if you had never met.
struct dial_request {
  caf::actor reply_to;
  caf::actor target;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(dial_request, x.reply_to, x.target, x.token)
};

/// From the third peer to the asked one, and on to the asker.
struct dial_answer {
  std::uint64_t token = 0;
  std::uint8_t opened = 0;
  SHOAL_MESSAGE(dial_answer, x.token, x.opened)
};

// ---- inside one host ----------------------------------------------------------------------------

/// host::run() is over.
struct work_done {
  std::uint64_t token = 0;
  SHOAL_MESSAGE(work_done, x.token)
};

/// host::dial() is over.
struct dialled {
  std::uint64_t token = 0;
  bool opened = false;
  SHOAL_MESSAGE(dialled, x.token, x.opened)
};

/// A timer of the receiving actor: what it means and for which attempt it was set.
struct tick {
  std::uint32_t kind = 0;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(tick, x.kind, x.token)
};

#undef SHOAL_MESSAGE

/// What bytes are counted as in summary.json.
enum class traffic : std::uint8_t { data, averaging, state, control };

/// Registers every message type with CAF. Call before the actor_system is made.
void register_messages(caf::actor_system_config& config);

/// The traffic class and portable name of a message, and how many bytes one is when it is serialized.
struct message_kind {
  traffic kind = traffic::control;
  const char* name = "?";
  std::uint64_t (*bytes)(const caf::type_erased_tuple&) = nullptr;   ///< null for what is no message of ours
};
message_kind kind_of(const caf::type_erased_tuple& content);
/// The traffic class of a message by its name in message_kind; control for what is none.
traffic traffic_of(std::string_view name);
/// Whether this is the portable name of a message that one host may send to another: not those that stay inside one.
bool goes_between_hosts(std::string_view portable_name);

}  // namespace shoal::actors
