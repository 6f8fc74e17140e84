// Butterfly all-reduce inside one closed group, with uneven parts. A plain state machine; the group
// actor feeds it messages. Its parts are plain machines too:
// part_layout has chunks and codecs, outbox the chunks to send, and part_reduction a reducer's
// means. part_recovery has the parts of lost reducers, and ballot the votes.
//
// Steps, for P members and a vector of S bytes cut at the leader's boundaries:
//   1. Member i sends its slice of part j to member j, in chunks. At most `window_chunks` of them
//      are unacknowledged to each member. The number of acknowledgements grows with the square of
//      the members. So a group of more than 16 members, whose parts have so few chunks that the
//      window never fills, has none. There the finished parts and votes say what arrived.
//   2. Member j reduces a chunk as soon as all senders have delivered it (part_reduction.hpp). The
//      mean is taken in member order, and divided by the weights of exactly those senders. Member j
//      sends it with the list of senders to all members, while other chunks still come in. An
//      aggregator of whole parts (aggregator.hpp) begins when the part is complete.
//   3. A member that holds all parts votes: it signs the version that it holds, and tells all
//      members. The version is the hash of all lists of senders and all values. More than two
//      thirds of the votes are the round's certificate (certificate.hpp), and a member that has it
//      is done. A member that cannot get the votes themselves asks a member that is done for the
//      certificate. Nobody's word ends a round. The outcome is `ok` if every part holds every
//      sender, else `partial`.
// A sender that dies, or is silent for sender_timeout, is left out of the chunks that lack its
// slices. So are the senders that are behind at half of round_timeout, if more than half of the
// weight is there. Thus a trickling sender cannot make the round fail. A member that declines the
// group, or sends what no correct member sends, is treated as one that died.
//
// A lost reducer. The order of part j is j, j + 1, ... round the group, without the members that
// cannot be reached. A member takes part j from the first in its order that is not gone for it.
// When that first member changes, the member tells the new one which chunks it holds already
// (part_query). A member that is itself first claims the part. It waits until each member that is
// alive for it has said what it holds, or that it holds the whole part. Then it fetches the
// finished chunks that some member holds, asks all members for their slices of the others, reduces
// these, and serves all members. A member that still trusts an earlier reducer answers only once it
// holds the whole part. So nothing is reduced again that can still be had. (butterfly_recovery.cpp)
//
// One result. Two members that take each other for dead may reduce the same part from different
// senders. A hostile reducer may give each member other values. But each member votes once, for
// the version that it holds, and two sets of more than two thirds share more than a third. So at
// most one version ever gets a certificate while fewer than a third are hostile. All members that
// end `ok` or `partial` hold that version, and so the same bits. The other members fail and find
// the leading branch in the records; the round is a `split` if some member completed it. Members
// that voted for different versions tell each other what they hold of each part. So a round without
// a certificate names the reducers whose parts differ (bad_reducers()). When the members that are
// alive for us cannot make a certificate any more, we fail: at once if we are alone, else after
// sender_timeout. In that time a member that sees more of them may give us the certificate.
// (docs/adr/0030, butterfly_result.cpp)
//
// A censoring reducer. An acknowledgement says whether a slice came in time. A member does not vote
// for a part without its values whose reducer acknowledged all of its slices in time, and names
// that reducer. Nor does it vote for a part that has fewer than half of the contributors that are
// alive for it. A reducer that leaves out values for their size tells their sender before it sends
// the list. This is no new power: it could have said that they came too late.
//
// With a lossy codec all members count with the values that the codec leaves, so the result is the
// same whoever reduces. A reducer takes its own values as the others would get them, and holds its
// means as it sends them. A codec that drops values does so once, before the round: the values that
// it left are the contribution, which it writes without further loss. The owner keeps the rest.
// A member that only reduces (takes = 0) gives nothing, gets no parts but its own, and has no vote.
// It is done when it has the certificate.
//
// Two members that cannot be reached say nothing to each other. They have no parts, and get the
// certificate from a member that both can reach.
//
// Bytes on the wire per member: S (1 - w_i) + S w_i (P - 1) up, and as many down. S is the size of
// the vector as the codec writes it, and w_i the share of the member's part. All P members give and
// take here; kernels/averaging_plan.hpp has the other cases. The unfinished rest of a lost
// reducer's part costs its new reducer P - 2 times that rest, up and down. The votes are 2 (P - 1)
// small messages for each member, and take one delay. Memory: own values, the finished chunks, and
// in a reducer that of part_reduction. Nothing is kept for losses, because senders hold their own
// values until the round is over.
#pragma once

#include "actors/averaging/ballot.hpp"
#include "actors/averaging/certificate.hpp"
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

class round_guard;

class butterfly {
public:
  butterfly(averaging_config config, round_request request, group_begun group, peer_id self,
            round_io& io, std::function<void(round_result)> done);
  /// `done` may begin another round while this one runs: a container of rounds must not move them.
  butterfly(const butterfly&) = delete;
  butterfly& operator=(const butterfly&) = delete;

  /// The round tolerates false values (guard.hpp). The guard outlives the round. Without a guard
  /// the members trust each other, and no message differs.
  void guard_with(round_guard& guard) noexcept { guard_ = &guard; }
  /// The guard lets values leave, and no values of the members `without` count.
  void values_may_leave(const std::vector<std::uint32_t>& without);
  /// By part, its own member if all chunks came from there directly; else the number of members.
  /// Another member then reduced some chunks, or passed them on.
  std::vector<std::uint32_t> reducers() const;

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
  void on(const part_versions& message, const caf::strong_actor_ptr& sender);
  void on(const member_finished& message, const caf::strong_actor_ptr& sender);
  void on(const certificate_wanted& message, const caf::strong_actor_ptr& sender);
  void on(const certificate_given& message, const caf::strong_actor_ptr& sender);
  void on_down(const caf::actor_addr& whom);
  /// Looks for silent senders; to be called every now and then.
  void check_senders();
  void on_round_timeout();

  /// Our values, as the codec leaves them if it drops values.
  const payload& contribution() const noexcept { return values_; }
  /// The members that are gone for us, and why.
  std::vector<std::pair<std::uint32_t, reason>> lost_members() const;
  /// Another round of the same group says that the member declined or is gone.
  void leave_out_member(std::uint32_t member, reason why) { lose_and_go_on(member, why); }

  /// The round is over for us.
  bool finished() const noexcept { return finished_; }
  /// No member needs anything from us any more.
  bool idle() const;
  const group_begun& group() const noexcept { return group_; }
  /// The hash of the result that we hold. Requires: we hold all parts.
  id128 version() const;
  std::uint32_t self() const noexcept { return self_; }

private:
  struct member_state {
    bool down = false;
    reason lost = reason::none; // why it is down
    bool finished = false;
    bool has_certificate = false;          // according to itself
    bool asked = false;                    // for its certificate
    bool given = false;                    // we gave it ours
    bool told = false;                     // our part_versions
    std::vector<id128> versions;           // from the part_versions of the member
    std::uint32_t in_time = 0;             // slices of its part that it acknowledged as in time
    std::uint32_t replies_unconfirmed = 0; // chunks of my part that it has not confirmed
  };
  using sender_list = std::shared_ptr<const std::vector<std::uint32_t>>;
  struct held_chunk {
    payload
        wire; // the bytes that its reducer sent: a member that passes the chunk on sends the same
    sender_list senders; // null: not held
    id128 version;       // chunk_version()
  };
  struct part_state {
    chunk_grid grid;
    std::vector<held_chunk> chunks;
    std::uint32_t missing = 0; // chunks that are not held
    std::uint32_t source = 0;  // the member that we take it from; size_: no member is left
    std::map<std::uint32_t, chunk_set>
        receivers; // the members that take it from us; the chunks that they have or were sent
    std::optional<part_reduction> reduction; // if we reduce it
    part_recovery recovery;
    bool direct = true; // all chunks that are held came from the part's own member
  };

  using codec_ptr = part_layout::codec_ptr;
  bool by_part() const { return config_.aggregator->unit == aggregation_unit::part; }
  round_extent extent() const { return {values_.size() / 4, group_.group}; }
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
  std::vector<part_outcome> outcomes() const;
  /// False if the list leaves out values that the reducer acknowledged, or most contributors.
  bool may_vote_for(std::uint32_t part, const std::vector<std::uint32_t>& senders,
                    std::uint32_t from);
  /// Counts a signed vote or decline. False if the member contradicts itself.
  bool take_vote(std::uint32_t member, const id128& version, const signature& by);
  bool take_decline(std::uint32_t member, const signature& by);
  bool is_decline(std::uint32_t member, const signature& by) const;
  void convict(std::uint32_t member, contradiction proof);
  void ask_for_certificate(bool now);
  void vote_if_complete();
  void tell_of_disagreement();
  std::vector<id128> held_versions() const;
  /// The reducers of the parts of which members hold different values. Empty if too few members
  /// have said what they hold.
  std::set<member_id> bad_reducers() const;
  void finish_if_decided();
  void succeed();
  void finish(round_result result, bool failed);
  void fail(reason why);

  const averaging_config config_;
  const round_request request_;
  payload values_;      // our contribution
  float_buffer result_; // the mean as it comes; empty if we take none or values are size-only
  const group_begun group_;
  round_io& io_;
  std::function<void(round_result)> done_;
  round_guard* guard_ = nullptr;
  std::uint32_t self_ = 0;
  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> others_;
  std::vector<member_state> members_;
  const group_id first_group_; // names both rounds
  const part_layout layout_;
  std::vector<part_state> parts_;
  outbox outbox_;
  ballot ballot_;
  std::uint32_t parts_missing_ = 0;
  bool finished_ = false;
  bool acknowledges_ = true;
  bool censored_ = false; // a part lacks what it must have
  std::uint64_t chunks_to_send_ = 0, chunks_confirmed_ = 0;
  std::set<std::uint32_t> served_; // members that confirmed my whole part
  reason trouble_ = reason::none;
  std::optional<duration> hopeless_since_;
  duration started_{};
  std::vector<duration> part_times_;
};

} // namespace shoal::actors
