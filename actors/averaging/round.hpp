// What a round of averaging is given and what it gives back: the vocabulary shared by matchmaking,
// the all-reduce, the group actor and the peer that owns it.
#pragma once

#include "actors/averaging/aggregator.hpp"
#include "actors/averaging/messages.hpp"
#include "actors/averaging/part_outcome.hpp"
#include "actors/averaging/part_split.hpp"
#include "actors/conduct/conduct.hpp"
#include "actors/reasons.hpp"
#include "kernels/base/units.hpp"
#include "kernels/compress/vector_codec.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/message.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace shoal::actors {

struct averaging_config {
  part_split split = part_split::adaptive;
  std::uint32_t group_size = 256;
  std::uint32_t min_group_size = 1;
  duration matchmaking_time = std::chrono::seconds(5);
  duration round_timeout = std::chrono::seconds(120);
  duration sender_timeout = std::chrono::seconds(10);
  std::uint64_t chunk_bytes = 256 * 1024;
  std::uint32_t window_chunks = 8; ///< unacknowledged chunks to one member
  duration poll_interval = std::chrono::milliseconds(500);
  const aggregator_definition* aggregator = &mean_aggregator(); ///< all members have the same
  std::shared_ptr<actors::conduct> conduct = honest_conduct();
};

/// Somebody who is expected in the round because its progress record is in sync.
struct expected_peer {
  peer_id peer = 0;
  caf::actor address;
};

/// Who can connect to a member. One that nobody reaches never leads or reduces unless nobody else
/// is there.
enum class reached_by : std::uint8_t {
  nobody,
  relay, ///< every byte would pass a relay: it reduces only if nobody else can
  all,
};

/// How values are written where they travel; null: as they are.
struct round_codecs {
  std::shared_ptr<const kernels::vector_codec> contributions; ///< from members to reducers
  std::shared_ptr<const kernels::vector_codec> means;         ///< back
  /// Both kernels::codec in one number, as messages name them: who averages together has the same.
  /// (A fraction of top_k is each member's own business.)
  std::uint8_t number() const {
    const auto of = [](const auto& codec) {
      return codec ? static_cast<std::uint8_t>(codec->which()) : std::uint8_t{0};
    };
    return static_cast<std::uint8_t>(of(contributions) | of(means) << 4);
  }
};

/// A second round that begins in the same group, with the same members, where the first one ended
/// well.
struct second_round {
  std::uint64_t value_count = 0; ///< 0: there is none
  /// What we give to it, from the mean of the first one (of who takes no result: from nothing).
  /// Called in the group's actor, at most once.
  std::function<payload(const payload& mean)> values;
  round_codecs codecs;
};

struct round_request {
  std::uint64_t epoch = 0;
  state_id state;
  payload values;           ///< floats (or hollow); the vector to average
  std::uint64_t weight = 0; ///< samples in it; 0: only wants the result
  std::vector<sample_range> samples;
  std::uint64_t rate_up = 0, rate_down = 0; ///< of our line, bit/s
  reached_by reached = reached_by::all;
  bool takes = true;                      ///< false: only reduces for the others (weight 0)
  std::map<peer_id, double> rate_factors; ///< of what they say, where it is less: rate_book.hpp
  round_codecs codecs;
  second_round second;
  bool must_be_finite =
      false; ///< values that are not end the round for us: what is made of them would hide them
  std::vector<expected_peer> expected;
  std::uint64_t known_samples = 0; ///< of the branch, ours included: half of it is a quorum
  /// Members if everybody comes: a leader that reaches them closes, and waits for them until its
  /// patience is over. 0: it waits for those that `expected` and records name.
  std::uint32_t wanted = 0;
  duration patience{}; ///< of a leader; 0: matchmaking_time
  caf::actor dht;
};

struct round_result {
  actors::outcome outcome = outcome::failed;
  actors::reason reason = reason::none;
  group_id group; ///< zero if no group formed
  std::uint64_t epoch = 0;
  std::uint32_t member = 0;
  std::vector<member_info> members;
  std::vector<std::uint32_t> declined; ///< members that are in another group, with their samples
  std::vector<part_outcome> parts; ///< of the last round; those that are not empty; one that lost a
                                   ///< sender half-way is several
  payload values; ///< the mean; ok and partial only, and of who takes it. After two rounds: of
                  ///< both, in their order
  payload given;  ///< our contribution (to the last round) as the codec left it
  std::vector<duration> part_times; ///< by part: from the begin until it was complete here; 0: it
                                    ///< is empty or did not come
  std::vector<duration> line_times; ///< by part: how long its reducer's line is busy with this
                                    ///< round, if it carries what it says; 0: it is empty
  duration started{};
  duration gathered{}; ///< leader: until the last member came; follower: until the group began

  bool succeeded() const noexcept { return outcome == outcome::ok || outcome == outcome::partial; }
};

/// From a group actor to its owner on the same host; never crosses hosts (a pointer).
struct round_report {
  std::shared_ptr<const round_result> result;
};

/// From the owner to its group actor: who is expected now.
struct expected_now {
  std::vector<expected_peer> peers;
  std::uint64_t known_samples = 0;
};

/// What the plain state machines of a round may do to the world; the group actor does it.
class round_io {
public:
  virtual ~round_io() = default;
  virtual void send_to(const caf::actor& to, caf::message content) = 0;
  /// Learn of the end of `whom`.
  virtual void watch(const caf::actor& whom) = 0;
  virtual void probe(std::string_view point) = 0;
  /// host::failpoint.
  virtual bool failpoint(std::string_view branch) {
    (void)branch;
    return false;
  }
  virtual duration time() const = 0;
  virtual void suspect(peer_id culprit, std::string why) = 0;
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::round_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::expected_now)
