// Messages of a round: matchmaking forms a group, and a butterfly all-reduce averages its members'
// values.
#pragma once

#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "actors/payload_inspect.hpp"
#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <vector>

namespace shoal::actors {

// ---- matchmaking --------------------------------------------------------------------------------

struct member_info {
  peer_id peer = 0;
  caf::actor address;        ///< the member's group actor
  std::uint64_t weight = 0;  ///< samples in its contribution
  std::uint64_t rate_up = 0; ///< declared rate of its line, bit/s; the rates decide its share
  std::uint64_t rate_down = 0;
  std::uint8_t reached = 2; ///< reached_by in actors/averaging/round.hpp
  std::uint8_t takes = 1;   ///< 0: the member only reduces and wants no result
  std::vector<sample_range> samples;
  key256 key{};       ///< the key of the host that has `address`
  id128 state_root{}; ///< root of the bits of the state that the round starts from; zero: unknown
  signature by{};     ///< by `key`, over member_statement() in actors/averaging/certificate.hpp
  SHOAL_MESSAGE(member_info, x.peer, x.address, x.weight, x.rate_up, x.rate_down, x.reached,
                x.takes, x.samples, x.key, x.state_root, x.by)
};

struct join_request {
  std::uint64_t epoch = 0;
  state_id state;
  std::uint64_t value_count = 0; ///< length of the vector to average, or of both rounds' vectors
  std::uint8_t codec = 0;        ///< round_codecs::number()
  std::int64_t deadline = 0;     ///< the sender's own, if it becomes leader: utc ns
  member_info member;
  SHOAL_MESSAGE(join_request, x.epoch, x.state, x.value_count, x.codec, x.deadline, x.member)
};

struct join_accepted {
  group_id round; ///< the leader's name for the coming group
  SHOAL_MESSAGE(join_accepted, x.round)
};

/// `why` is a reason. `suggested` is another leader, with its id and deadline, if the sender knows
/// one.
struct join_rejected {
  std::uint8_t why = 0;
  peer_id suggested_peer = 0;
  std::int64_t suggested_deadline = 0;
  caf::actor suggested;
  SHOAL_MESSAGE(join_rejected, x.why, x.suggested_peer, x.suggested_deadline, x.suggested)
};

/// A follower leaves before the round begins.
struct join_withdrawn {
  peer_id peer = 0;
  SHOAL_MESSAGE(join_withdrawn, x.peer)
};

/// The group is closed: the roster, which each member has signed for itself and the leader as a
/// whole. Each member computes the part boundaries from it (matchmaking.hpp), so they are not sent.
/// Boundaries are value indices; member j reduces [boundaries[j], boundaries[j+1]) in chunks of
/// `chunk_bytes` of values (before the codec). With two consecutive rounds, the boundaries of the
/// second follow those of the first. The second round's messages use another id
/// (actors/averaging/group.hpp).
struct group_begun {
  group_id group; ///< hash of the other sent fields but `by`: group_of() in certificate.hpp
  std::uint64_t epoch = 0;
  state_id state;
  std::vector<member_info> members;
  std::vector<std::uint64_t> boundaries; ///< not sent
  std::uint64_t chunk_bytes = 256 * 1024;
  std::uint8_t codec = 0;          ///< round_codecs::number()
  std::uint8_t split = 0;          ///< part_split
  std::uint64_t value_count = 0;   ///< length of the vector to average, or of both rounds' vectors
  std::uint64_t second_values = 0; ///< length of the second round's vector
  std::int64_t attempt = 0;        ///< the leader's deadline: tells its attempts apart
  std::uint32_t leader = 0;        ///< index of the member that closed the group
  /// By member, the fraction of its declared rates that the leader plans with: (factor + 1) /
  /// 65536; empty: all of them. Up to a third of the members may have 0, and then get no part.
  std::vector<std::uint16_t> rate_factors;
  signature by; ///< by the leader, over group_statement()
  SHOAL_MESSAGE(group_begun, x.group, x.epoch, x.state, x.members, x.chunk_bytes, x.codec, x.split,
                x.value_count, x.second_values, x.attempt, x.leader, x.rate_factors, x.by)
};

/// Goes to every other member of a group: its leader counted on `member`, which joined another
/// group meanwhile. The others treat `member` as dead in that round.
struct member_declined {
  group_id group;
  std::uint32_t member = 0;
  signature by; ///< by `member`, over decline_statement()
  SHOAL_MESSAGE(member_declined, x.group, x.member, x.by)
};

/// A member's signature under a statement of its group.
struct member_signature {
  std::uint32_t member = 0;
  signature by;
  SHOAL_MESSAGE(member_signature, x.member, x.by)
};

// ---- butterfly all-reduce -----------------------------------------------------------------------

/// Chunks of one part, by number.
struct chunk_range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  SHOAL_MESSAGE(chunk_range, x.first, x.count)
};

/// A piece of `sender`'s values for `part`, as the codec writes them. `offset` counts bytes of
/// values from the begin of the part.
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
  std::vector<std::uint32_t> senders; ///< ascending
  payload data;
  SHOAL_MESSAGE(reduced_chunk, x.group, x.part, x.offset, x.weight, x.senders, x.data)
};

/// One chunk arrived, so the receiver of this message may send another (credit window). `reduced`
/// says which: 0 a slice in time for its part, 1 a mean, 2 a slice that came too late. 3 takes a
/// 0 back: the mean lacks that slice, because its values lay too far off.
struct chunk_received {
  group_id group;
  std::uint32_t member = 0; ///< the member that received the chunk
  std::uint32_t part = 0;
  std::uint8_t reduced = 0;
  SHOAL_MESSAGE(chunk_received, x.group, x.member, x.part, x.reduced)
};

/// Asks the receiver for `part`. All reducers before the receiver in the order of `part` are gone
/// for the sender, which already has the chunks `held`.
struct part_query {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  std::vector<chunk_range> held;
  SHOAL_MESSAGE(part_query, x.group, x.member, x.part, x.held)
};

/// The sender is going to reduce `part`, because all reducers before it in the order of `part` are
/// gone for it. A member that has the part from an earlier reducer, or gets it later, answers with
/// part_answer.
struct part_claim {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  SHOAL_MESSAGE(part_claim, x.group, x.member, x.part)
};

/// Answers a claim: the sender has all of `part` already.
struct part_answer {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  SHOAL_MESSAGE(part_answer, x.group, x.member, x.part)
};

/// The claimant of `part` asks for these chunks: the receiver's own values (reduced 0) or finished
/// ones (1).
struct part_wanted {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  std::uint8_t reduced = 0;
  std::vector<chunk_range> chunks;
  SHOAL_MESSAGE(part_wanted, x.group, x.member, x.part, x.reduced, x.chunks)
};

/// A member's vote: it holds all parts with exactly these senders, and will never hold others.
struct member_ready {
  group_id group;
  std::uint32_t member = 0;
  id128 version; ///< hash of the senders and the values of every chunk: version_of()
  signature by;  ///< by `member`, over vote_statement()
  SHOAL_MESSAGE(member_ready, x.group, x.member, x.version, x.by)
};

/// A member tells what it holds of each part to a member that voted for another version. So both
/// see whose part is not the same everywhere.
struct part_versions {
  group_id group;
  std::uint32_t member = 0;
  std::vector<id128> versions; ///< by part: version_of() its chunks
  SHOAL_MESSAGE(part_versions, x.group, x.member, x.versions)
};

/// Asks a member for the votes of a round that ended well for it.
struct certificate_wanted {
  group_id group;
  std::uint32_t member = 0; ///< the sender
  SHOAL_MESSAGE(certificate_wanted, x.group, x.member)
};

/// The votes that ended a round: round_certificate without its roster, which the receiver has.
struct certificate_given {
  group_id group;
  std::uint32_t member = 0; ///< the sender
  id128 version;
  std::vector<member_signature> votes, declines; ///< ascending members
  SHOAL_MESSAGE(certificate_given, x.group, x.member, x.version, x.votes, x.declines)
};

/// A member's round ended and it needs nothing more from the others. If `failed` is not set, the
/// member has the round's certificate for `version`. A member that needs it asks for the
/// certificate.
struct member_finished {
  group_id group;
  std::uint32_t member = 0;
  std::uint8_t failed = 0;
  id128 version;
  SHOAL_MESSAGE(member_finished, x.group, x.member, x.failed, x.version)
};

using averaging_messages = message_list<row<member_info, traffic::control, scope::remote>,
                                        row<join_request, traffic::control, scope::remote>,
                                        row<join_accepted, traffic::control, scope::remote>,
                                        row<join_rejected, traffic::control, scope::remote>,
                                        row<join_withdrawn, traffic::control, scope::remote>,
                                        row<group_begun, traffic::control, scope::remote>,
                                        row<member_declined, traffic::control, scope::remote>,
                                        row<part_chunk, traffic::averaging, scope::remote>,
                                        row<reduced_chunk, traffic::averaging, scope::remote>,
                                        row<chunk_received, traffic::control, scope::remote>,
                                        row<part_query, traffic::control, scope::remote>,
                                        row<part_claim, traffic::control, scope::remote>,
                                        row<part_answer, traffic::control, scope::remote>,
                                        row<part_wanted, traffic::control, scope::remote>,
                                        row<chunk_range, traffic::control, scope::remote>,
                                        row<member_ready, traffic::control, scope::remote>,
                                        row<part_versions, traffic::control, scope::remote>,
                                        row<member_finished, traffic::control, scope::remote>,
                                        row<member_signature, traffic::control, scope::remote>,
                                        row<certificate_wanted, traffic::control, scope::remote>,
                                        row<certificate_given, traffic::control, scope::remote>>;

} // namespace shoal::actors
