// What a round of averaging is given and what it gives back: the vocabulary shared by matchmaking,
// the all-reduce, the group actor and the peer that owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/message.hpp>

#include "actors/messages.hpp"
#include "actors/observe.hpp"
#include "kernels/base/units.hpp"

namespace shoal::actors {

/// Deliberate bugs that the tests switch on to show that the checks can fail. Never in a scenario.
enum class mutant : std::uint8_t {
  none,
  wrong_denominator,   ///< a reducer divides by the group's weight, who is missing included
  lost_sample,         ///< a peer forgets the last sample it computed
  unordered_peers,     ///< members are served in the order in which memory happens to lie
  equal_weights,       ///< every contribution weighs the same
  divide_by_peers,     ///< a reducer divides by the number of senders instead of their samples
  throwing_gradient,   ///< from the second epoch on, computing a gradient throws
  lone_vote,           ///< a member takes its own vote for a majority
  throwing_step,       ///< so does the second optimizer step
  forgotten_commit,    ///< backups of the data shard do not note that a sample is committed
};

struct averaging_config {
  std::uint32_t group_size = 256;
  std::uint32_t min_group_size = 1;
  duration matchmaking_time = std::chrono::seconds(5);
  duration round_timeout = std::chrono::seconds(120);
  duration sender_timeout = std::chrono::seconds(10);
  std::uint64_t chunk_bytes = 256 * 1024;
  std::uint32_t window_chunks = 8;           ///< unacknowledged chunks to one member
  duration poll_interval = std::chrono::milliseconds(500);
  actors::mutant mutant = mutant::none;
};

/// Somebody who is expected in the round because its progress record is in sync.
struct expected_peer {
  peer_id peer = 0;
  caf::actor address;
};

/// The rate of who can be reached, but by a relay's line alone.
inline constexpr std::uint64_t relayed_rate = 1;

struct round_request {
  std::uint64_t epoch = 0;
  state_id state;
  payload values;                            ///< floats (or hollow); the vector to average
  std::uint64_t weight = 0;                  ///< samples in it; 0: only wants the result
  std::vector<sample_range> samples;
  std::uint64_t rate = 0;                    ///< min(up, down), bit/s; relayed_rate; 0: nobody can reach us
  std::vector<expected_peer> expected;
  std::uint64_t known_samples = 0;           ///< of the branch, ours included: half of it is a quorum
  /// Members if everybody comes: a leader that reaches them closes, and waits for them until its patience is over. 0: it waits for
  /// those that `expected` and records name.
  std::uint32_t wanted = 0;
  duration patience{};                       ///< of a leader; 0: matchmaking_time
  caf::actor dht;
};

struct round_result {
  actors::outcome outcome = outcome::failed;
  actors::reason reason = reason::none;
  group_id group;                            ///< zero if no group formed
  std::uint64_t epoch = 0;
  std::uint32_t member = 0;
  std::vector<member_info> members;
  std::vector<std::uint32_t> declined;       ///< members that are in another group, with their samples
  std::vector<part_outcome> parts;           ///< those that are not empty; one that lost a sender half-way is several
  payload values;                            ///< the mean; ok and partial only
  duration started{};
  duration gathered{};                       ///< leader: until the last member came; follower: until the group began

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
  virtual duration time() const = 0;
  virtual void suspect(peer_id culprit, std::string why) = 0;
};

}  // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::round_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::expected_now)
