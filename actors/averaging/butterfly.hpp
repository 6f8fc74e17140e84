// Butterfly all-reduce inside one closed group, with uneven parts. A plain state machine; the group
// actor feeds it messages.
//
// Steps, for P members and a vector of S bytes cut at the leader's boundaries:
//   1. member i sends its slice of part j to member j, in chunks, at most `window_chunks` of them
//      unacknowledged to each member. Acknowledgements go with the square of the members: in groups
//      of more than 16 whose parts have so few chunks that the window never fills there are none;
//      there the finished parts and votes say what arrived;
//   2. member j reduces each chunk as soon as it has it from all senders (part_reduction.hpp: in
//   member
//      order, divided by the weights of exactly those senders), and sends it with that list to
//      everybody, while others still come in; an aggregator of whole parts (aggregator.hpp) begins
//      when the part is complete;
//   3. a member that holds all parts votes: it tells everybody the version it holds (the hash of
//   all lists
//      of senders). When it knows the votes of more than half of the members for that version, or
//      somebody who knew them says so, it is done: `ok` if every part holds every sender, else
//      `partial`.
// A sender that dies or is silent for sender_timeout is left out of the chunks that lack it. So
// that one that trickles cannot make the round fail, so are those who are behind at half of
// round_timeout, if more than half of the weight is there. A member that declines the group, or
// sends what no correct member sends, is treated as one that died.
//
// A lost reducer. The order of part j is j, j + 1, ... round the group, without those who cannot be
// reached. A member takes part j from the first in its order that is not gone for it. When that
// changes it says to the new one what it holds already (part_query); whoever is first itself claims
// the part: when each of those who are alive for it has said so, or that it has the whole part, it
// fetches finished chunks that somebody has, asks all for their slices of the others, reduces
// these, and serves everybody. Who still trusts an earlier one does not answer before it has all:
// so nothing is reduced again that can still be had. (butterfly_recovery.cpp) One result. Two
// members that take each other for dead may reduce the same part from different senders.
//   But each member votes once, for what it holds, and two majorities share a member: at most one
//   version ever gets a majority, and all members that end `ok` or `partial` hold that one. The
//   others fail (the round is a `split` if somebody completed it) and find the leading branch in
//   the records. When the members that are alive for us cannot make a majority any more, we fail:
//   at once if we are alone, else after sender_timeout, in which somebody who sees more of them may
//   tell us. (docs/adr/0011)
//
// With a lossy codec everybody reckons with what the codec leaves, so that it is one result whoever
// reduces: a reducer takes its own
//   values as the others would get them, and holds its means as it sends them. A codec that drops
//   values does so once, before the round: what it left is the contribution, which it writes
//   without further loss, and the owner keeps the rest.
// Who only reduces (takes = 0) gives nothing, gets no parts but its own, has no vote, and is done
// when all others are.
//
// Two members that cannot be reached say nothing to each other; they have no parts, and hear of the
// majority from somebody whom both can reach.
// Bytes on the wire per member (of P that all give and take; kernels/averaging_plan.hpp for
// others): up and down S (1 - w_i) + S w_i (P - 1), w_i = share of its part, S as the codec writes
// the vector. A lost reducer's part costs once more what is not finished of it: up and down of its
// new reducer (P - 2) times that. The votes: 2 (P - 1) small messages each, and one delay. Memory:
// own values, the finished chunks, as reducer what part_reduction keeps; nothing is kept for a loss
// that is not there anyway (senders hold their own values until the round is over).
#pragma once

#include "actors/averaging/ballot.hpp"
#include "actors/averaging/messages.hpp"
#include "actors/averaging/outbox.hpp"
#include "actors/averaging/part_layout.hpp"
#include "actors/averaging/part_recovery.hpp"
#include "actors/averaging/part_reduction.hpp"
#include "actors/averaging/round.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace shoal::actors {

class butterfly {
public:
  butterfly(averaging_config config, round_request request, group_begun group, peer_id self,
            round_io& io, std::function<void(round_result)> done);
  /// `done` may begin another round while this one runs: a container of rounds must not move them.
  butterfly(const butterfly&) = delete;
  butterfly& operator=(const butterfly&) = delete;

  void start();
  void on(const member_declined& message, const caf::strong_actor_ptr& sender);
  void on(const part_chunk& message, const caf::strong_actor_ptr& sender);
  void on(const reduced_chunk& message, const caf::strong_actor_ptr& sender);
  void on(const chunk_received& message, const caf::strong_actor_ptr& sender);
  void on(const part_query& message, const caf::strong_actor_ptr& sender);
  void on(const part_claim& message, const caf::strong_actor_ptr& sender);
  void on(const part_answer& message, const caf::strong_actor_ptr& sender);
  void on(const part_wanted& message, const caf::strong_actor_ptr& sender);
  void on(const member_ready& message, const caf::strong_actor_ptr& sender);
  void on(const member_finished& message, const caf::strong_actor_ptr& sender);
  void on_down(const caf::actor_addr& whom);
  /// Looks for silent senders; to be called every now and then.
  void check_senders();
  void on_round_timeout();

  /// What we give, as the codec leaves it if it drops values.
  const payload& contribution() const noexcept { return values_; }
  /// Who is gone for us, and why.
  std::vector<std::pair<std::uint32_t, reason>> lost_members() const;
  /// It takes no part, or is gone: what another round of the same group says.
  void leave_out_member(std::uint32_t member, reason why) { lose_and_go_on(member, why); }

  /// We have our result.
  bool finished() const noexcept { return finished_; }
  /// Nobody needs anything from us any more.
  bool idle() const;
  const group_begun& group() const noexcept { return group_; }
  std::uint32_t self() const noexcept { return self_; }

private:
  struct member_state {
    bool down = false;
    reason lost = reason::none; // why it is down
    bool finished = false;
    std::uint32_t replies_unconfirmed = 0; // chunks of my part that it has not confirmed
  };
  using sender_list = std::shared_ptr<const std::vector<std::uint32_t>>;
  struct held_chunk {
    payload wire;        // as its reducer sent it: whoever passes it on sends the same
    sender_list senders; // null: not held
  };
  struct part_state {
    chunk_grid grid;
    std::vector<held_chunk> chunks;
    std::uint32_t missing = 0; // chunks that are not held
    std::uint32_t source = 0;  // whom we take it from; size_: nobody is left
    std::map<std::uint32_t, chunk_set>
        receivers;                           // who takes it from us; what they have or were sent
    std::optional<part_reduction> reduction; // if we reduce it
    part_recovery recovery;
  };

  using codec_ptr = part_layout::codec_ptr;
  bool by_part() const { return config_.aggregator->unit == aggregation_unit::part; }
  const codec_ptr& giving() const { return request_.codecs.contributions; }
  const codec_ptr& replying() const { return request_.codecs.means; }
  bool finite() const;
  void drop_values();
  bool from_member(std::uint32_t member, const caf::strong_actor_ptr& sender) const;
  /// The sender is a member that is alive for us; counts it if it is a stranger.
  bool listen_to(std::uint32_t member, const caf::strong_actor_ptr& sender, const char* what);
  void ban(std::uint32_t member, const char* why);
  std::vector<std::uint32_t> others() const;
  bool takes(std::uint32_t member) const { return group_.members[member].takes != 0; }
  bool reachable(std::uint32_t member) const { return group_.members[member].reached != 0; }
  /// Neither can be reached: nothing passes between them.
  bool apart(std::uint32_t member) const;
  void tell(std::uint32_t member, caf::message content);
  std::vector<std::uint64_t> weights() const;
  std::uint32_t majority() const;

  void slice_arrived();
  void reply_arrived(std::uint32_t at);
  void pump(std::uint32_t to);
  void serve(std::uint32_t to, std::uint32_t part);
  void contribute(std::uint32_t part, const chunk_set& chunks);
  void reduce(std::uint32_t part);
  void hold(std::uint32_t part, std::uint32_t chunk, payload wire, const payload& values,
            std::vector<std::uint32_t> senders);
  void leave_out(std::uint32_t part, std::uint32_t sender, reason why);

  // Losses: butterfly_recovery.cpp.
  void lose(std::uint32_t member, reason why);
  void lose_and_go_on(std::uint32_t member, reason why);
  std::uint32_t first_alive(std::uint32_t part) const;
  void look_for_source(std::uint32_t part);
  void claim(std::uint32_t part);
  void gather(std::uint32_t part);
  void answer_claims(std::uint32_t part);
  void fail_if_hopeless();

  // The end: butterfly_result.cpp.
  id128 version() const;
  std::vector<part_outcome> outcomes() const;
  void vote_if_complete();
  void finish_if_decided();
  void succeed();
  void finish(round_result result, bool failed);
  void fail(reason why);

  const averaging_config config_;
  const round_request request_;
  payload values_;      // what we give
  float_buffer result_; // the mean as it comes; empty if we take none or values are size-only
  const group_begun group_;
  round_io& io_;
  std::function<void(round_result)> done_;
  std::uint32_t self_ = 0;
  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> others_;
  std::vector<member_state> members_;
  const part_layout layout_;
  std::vector<part_state> parts_;
  outbox outbox_;
  ballot ballot_;
  std::uint32_t parts_missing_ = 0;
  bool finished_ = false;
  bool acknowledges_ = true;
  std::uint64_t chunks_to_send_ = 0, chunks_confirmed_ = 0;
  std::set<std::uint32_t> served_; // members that confirmed my whole part
  reason trouble_ = reason::none;
  std::optional<duration> hopeless_since_;
  duration started_{};
  std::vector<duration> part_times_;
};

} // namespace shoal::actors
