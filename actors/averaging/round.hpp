// The input and the result of one averaging round: the vocabulary that matchmaking, the all-reduce,
// the group actor and the owning peer share.
#pragma once

#include "actors/averaging/aggregator.hpp"
#include "actors/averaging/certificate.hpp"
#include "actors/averaging/messages.hpp"
#include "actors/averaging/part_outcome.hpp"
#include "actors/averaging/part_split.hpp"
#include "actors/conduct/conduct.hpp"
#include "actors/reasons.hpp"
#include "actors/trust/guard_options.hpp"
#include "kernels/base/units.hpp"
#include "kernels/compress/vector_codec.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/message.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace shoal::actors {

class newcomers;

/// The bounds of the pieces that suit a vector, in bytes.
inline constexpr std::uint64_t smallest_piece = 16 * 1024, largest_piece = 256 * 1024;

struct averaging_config {
  part_split split = part_split::adaptive;
  std::uint32_t group_size = 256;
  std::uint32_t min_group_size = 1;
  duration matchmaking_time = std::chrono::seconds(5);
  duration round_timeout = std::chrono::seconds(120);
  duration sender_timeout = std::chrono::seconds(10);
  std::uint64_t chunk_bytes = largest_piece; ///< for 0, see piece_bytes()
  std::uint32_t window_chunks = 8;           ///< unacknowledged chunks to one member
  duration poll_interval = std::chrono::milliseconds(500);
  /// A member with a larger weight is refused. 0: no limit.
  std::uint64_t most_weight = 0;
  /// A reducer refuses values whose norm is so many times the median of the members' norms. 0: no
  /// limit.
  double max_norm_ratio = 1000;
  const aggregator_definition* aggregator = &mean_aggregator(); ///< the same for all members
  option_values aggregation; ///< the aggregator's options, the same for all members
  std::shared_ptr<actors::conduct> conduct = honest_conduct();
  /// Rounds tolerate members that send false values (actors/averaging/guard.hpp); null: they trust
  /// their members. The same for all members.
  std::shared_ptr<const guard_options> guard;
};

/// The length of a piece in bytes, a multiple of 4, for vectors of `value_count` values. A part
/// travels in pieces. A reducer returns a piece as soon as all contributions to that piece came. A
/// part of one piece keeps the reducer's uplink idle until all senders are done. By default a piece
/// is a 64th of the vector.
inline std::uint64_t piece_bytes(const averaging_config& config, std::uint64_t value_count) {
  const auto bytes = config.chunk_bytes > 0
                         ? config.chunk_bytes
                         : std::clamp(4 * value_count / 64, smallest_piece, largest_piece);
  return std::max<std::uint64_t>(4, bytes / 4 * 4);
}

/// A peer that is expected in the round, because its progress record is in sync.
struct expected_peer {
  peer_id peer = 0;
  caf::actor address;
};

/// The hosts that can connect to a member. A member that no host reaches never leads or reduces,
/// unless it is alone.
enum class reached_by : std::uint8_t {
  nobody,
  relay, ///< over a relay, which carries every byte: the member reduces only if no other can
  all,
};

/// The codecs of a round's values on the network. A null codec sends values unchanged.
struct round_codecs {
  std::shared_ptr<const kernels::vector_codec> contributions; ///< from members to reducers
  std::shared_ptr<const kernels::vector_codec> means;         ///< from reducers to members
  /// Both kernels::codec values in one number, for messages. All members of a group use the same
  /// number. (The fraction of top_k may differ between members.)
  std::uint8_t number() const {
    const auto of = [](const auto& codec) {
      return codec ? static_cast<std::uint8_t>(codec->which()) : std::uint8_t{0};
    };
    return static_cast<std::uint8_t>(of(contributions) | of(means) << 4);
  }
};

/// A second round of the same group. It begins for a member whose first round has succeeded.
struct second_round {
  std::uint64_t value_count = 0; ///< 0: there is none
  /// Makes this member's contribution from the mean of the first round (an empty payload if the
  /// member takes no result). Called in the group actor, at most once.
  std::function<payload(const payload& mean)> values;
  round_codecs codecs;
};

struct round_request {
  std::uint64_t epoch = 0;
  state_id state;
  id128 state_root;         ///< root of the state's bits; zero: unknown
  payload values;           ///< floats (or size-only); the vector to average
  std::uint64_t weight = 0; ///< samples in it; 0: the member only wants the result
  std::vector<sample_range> samples;
  /// With averaging_config::guard: the samples again, as the blocks whose gradients were added, in
  /// that order.
  std::vector<sample_range> blocks;
  std::uint64_t rate_up = 0, rate_down = 0; ///< bit/s, this peer's line
  reached_by reached = reached_by::all;
  bool takes = true; ///< false: the member only reduces for the others (weight 0)
  /// A smaller number of members that take the result is no group, unless the group is full.
  std::uint32_t takers_needed = 0;
  std::map<peer_id, double>
      rate_factors; ///< fractions below 1 of the declared rates: rate_tracker.hpp
  round_codecs codecs;
  second_round second;
  /// In the second of two rounds: the version of the first. The group actor sets it.
  id128 first_version;
  /// Members whose groups failed this peer lately: it follows them only after all others, and does
  /// not wait for them.
  std::set<member_id> bad_leaders;
  /// Members whose parts differed from member to member lately: as a leader, this peer gives them
  /// none.
  std::set<member_id> bad_reducers;
  /// Members that this peer takes into no group: actors/trust/standing.hpp.
  std::set<member_id> sit_out;
  /// Members whose weight has to be 0: actors/trust/probation.hpp. Null: none.
  std::shared_ptr<const newcomers> on_probation;
  /// True: values with NaN or infinity end the round for this member. Codecs and aggregators would
  /// hide them.
  bool must_be_finite = false;
  std::vector<expected_peer> expected;
  /// Samples of the branch, with this peer's own, in the unit of `weight`. A quorum has half of
  /// them.
  std::uint64_t known_samples = 0;
  /// Another quorum, in the same unit, or all of `known_samples` where they are less. 0: the half.
  std::uint64_t quorum = 0;
  /// With `quorum`: how long a leader that has the quorum waits for the peers in `expected`.
  duration grace{};
  /// The number of members if all peers join. A leader with this number closes, and until its
  /// deadline it waits for it. 0: the leader waits for the peers in `expected` and in DHT records.
  std::uint32_t wanted = 0;
  duration max_wait{}; ///< how long a leader waits; 0: matchmaking_time
  /// The leader waits so much longer for the peers in `expected`. This time does not count in the
  /// deadline by which peers choose a leader, so the first one that is ready leads.
  duration awaited{};
  caf::actor dht;
};

struct round_result {
  actors::outcome outcome = outcome::failed;
  actors::reason reason = reason::none;
  group_id group; ///< zero if no group formed
  std::uint64_t epoch = 0;
  std::uint32_t member = 0;
  std::vector<member_info> members;
  /// The proof of the result, if the round is ok or partial. After two rounds, of the second one.
  std::shared_ptr<const round_certificate> certificate;
  /// The leader that this peer followed when the attempt failed before a group began; else zero.
  member_id bad_leader;
  /// The reducers whose parts differ among the members, if that may be why the round failed.
  std::set<member_id> bad_reducers;
  std::vector<std::uint32_t> declined; ///< members that are in another group, and their samples
  /// Parts of the last round that are not empty. A part that lost a sender half-way is several
  /// stretches.
  std::vector<part_outcome> parts;
  /// The mean, if the round is ok or partial and this member takes results. After two rounds, the
  /// means of both, in order.
  payload values;
  payload given; ///< this member's contribution to the last round, as the codec left it
  /// For each part, the time from the begin until it was complete at this member. 0 if it is empty
  /// or never arrived.
  std::vector<duration> part_times;
  /// For each part, how long its reducer's line is busy with the round at its declared rate. 0 if
  /// the part is empty.
  std::vector<duration> line_times;
  duration started{};
  /// Leader: the time until the last member joined. Follower: the time until the group began.
  duration gathered{};

  bool succeeded() const noexcept { return outcome == outcome::ok || outcome == outcome::partial; }
};

/// The report of a group actor to its owner. It holds a pointer and never crosses hosts.
struct round_report {
  std::shared_ptr<const round_result> result;
};

/// New information from the owner to its group actor: the peers that are expected.
struct expected_now {
  std::vector<expected_peer> peers;
  std::uint64_t known_samples = 0;
};

/// The effects that the state machines of a round have. The group actor implements them.
class round_io {
public:
  virtual ~round_io() = default;
  virtual void send_to(const caf::actor& to, caf::message content) = 0;
  /// Reports the end of `whom` to the state machines.
  virtual void watch(const caf::actor& whom) = 0;
  virtual void probe(std::string_view point) = 0;
  /// See host::failpoint.
  virtual bool failpoint(std::string_view branch) {
    (void)branch;
    return false;
  }
  virtual duration time() const = 0;
  // See the functions of these names in actors/host.hpp.
  virtual std::int64_t utc_ns() const = 0;
  virtual peer_id peer_of(const caf::strong_actor_ptr& address) const = 0;
  virtual member_id member_of(const caf::strong_actor_ptr& address) const = 0;
  virtual bool is_banned(const member_id& who) const = 0;
  virtual signature sign(const digest& statement) const = 0;
  virtual bool is_signed_by(const key256& key, const digest& statement,
                            const signature& by) const = 0;
  /// Says that `culprit` sent what no correct peer sends. 0: the culprit is unknown.
  virtual void suspect(peer_id culprit, std::string why) = 0;
  /// The member of this key has signed two statements that contradict each other.
  virtual void convict(peer_id culprit, const contradiction& proof) = 0;
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::round_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::expected_now)
