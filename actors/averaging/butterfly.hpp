// Butterfly all-reduce inside one closed group, with uneven parts. A plain state machine; the group
// actor feeds it messages.
//
// Steps, for P members and a vector of S bytes cut at the leader's boundaries:
//   1. member i sends its slice of part j to member j, in chunks, at most `window_chunks` of them
//      unacknowledged to each member;
//   2. member j adds what it got in member order (one order, one result), divides by the weights of
//      exactly those senders, and sends the part with that list back to everybody;
//   3. a member that holds all parts is done: `ok` if every part holds every sender, else `partial`.
// A sender that dies or is silent for sender_timeout before its slice is complete is left out of that
// part, weight and all. A member that declines the group is treated as one that died. For a reducer that dies, members ask each other for the finished part; when
// nobody alive has it the round is `failed: reducer_lost`.
// Two members that cannot be reached (rate 0) say nothing to each other; they have no parts, so they need nothing but what
// the other may have of a dead reducer's. Whom both can reach asks for both: it says no only when it has asked everybody.
// Bytes on the wire per member: up and down S (1 - w_i) + S w_i (P - 1), w_i = share of its part.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "actors/averaging/round.hpp"

namespace shoal::actors {

class butterfly {
 public:
  butterfly(const averaging_config& config, const round_request& request, const group_begun& group,
            peer_id self, round_io& io, std::function<void(round_result)> done);

  void start();
  void on(const member_declined& message, const caf::strong_actor_ptr& sender);
  void on(const part_chunk& message, const caf::strong_actor_ptr& sender);
  void on(const reduced_chunk& message, const caf::strong_actor_ptr& sender);
  void on(const chunk_received& message, const caf::strong_actor_ptr& sender);
  void on(const part_query& message, const caf::strong_actor_ptr& sender);
  void on(const part_answer& message, const caf::strong_actor_ptr& sender);
  void on(const member_finished& message, const caf::strong_actor_ptr& sender);
  void on_down(const caf::actor_addr& whom);
  /// Looks for silent senders; to be called every now and then.
  void check_senders();
  void on_round_timeout();

  /// We have our result.
  bool finished() const noexcept { return finished_; }
  /// Nobody needs anything from us any more.
  bool idle() const;
  const group_begun& group() const noexcept { return group_; }
  std::uint32_t self() const noexcept { return self_; }

 private:
  struct chunk {
    bool reduced = false;
    std::uint32_t part = 0;
    std::uint64_t offset = 0;
    payload data;
  };
  struct member_state {
    bool down = false;
    reason lost = reason::none;        // why it is down
    bool finished = false;
    std::deque<chunk> waiting;         // to be sent to it
    std::uint32_t in_flight = 0;
    std::uint32_t reduced_unacked = 0; // chunks of my part that it has not confirmed
  };
  /// Bytes of one thing coming in, in any order.
  struct assembly {
    std::map<std::uint64_t, payload> pieces;   // by offset
    std::uint64_t bytes = 0;
    bool add(std::uint64_t offset, const payload& data, std::uint64_t limit);
    payload join(std::uint64_t size) const;
  };
  struct contribution_state {
    assembly data;
    bool complete = false, left_out = false;
    duration last_progress{};
  };
  struct part_state {
    std::optional<payload> values;
    std::vector<std::uint32_t> senders;
    std::uint64_t weight = 0;
    std::map<std::uint32_t, assembly> incoming;       // by who sends it
    bool asked = false;
    std::set<std::uint32_t> no, yes;                  // answers
    std::vector<std::uint32_t> askers;                // who waits for our answer
  };

  std::uint64_t part_bytes(std::uint32_t part) const;
  payload own_slice(std::uint32_t part) const;
  bool from_member(std::uint32_t member, const caf::strong_actor_ptr& sender) const;
  std::vector<std::uint32_t> others() const;
  /// Neither can be reached: nothing passes between them.
  bool apart(std::uint32_t member) const;
  /// There are members that it cannot ask, and we can.
  bool relies_on_us(std::uint32_t asker) const;
  void queue(std::uint32_t to, bool reduced, std::uint32_t part, const payload& data);
  void pump(std::uint32_t to);
  void lose(std::uint32_t member, reason why);
  void leave_out(std::uint32_t sender, reason why);
  void reduce_if_ready();
  void reduce();
  void hold(std::uint32_t part, payload values, std::vector<std::uint32_t> senders, std::uint64_t weight);
  void answer(std::uint32_t part, std::uint32_t asker, bool have);
  void recover(std::uint32_t part);
  void finish_if_complete();
  void finish(round_result result);
  void fail(reason why);

  const averaging_config& config_;
  const round_request& request_;
  const group_begun group_;
  round_io& io_;
  std::function<void(round_result)> done_;
  std::uint32_t self_ = 0;
  std::uint32_t size_ = 0;
  std::vector<member_state> members_;
  std::vector<contribution_state> contributions_;     // to my part, by member
  std::vector<part_state> parts_;
  bool reduced_ = false, finished_ = false;
  std::uint64_t chunks_to_send_ = 0, chunks_confirmed_ = 0;
  std::set<std::uint32_t> served_;                    // members that confirmed my whole part
  reason trouble_ = reason::none;
  duration started_{};
};

}  // namespace shoal::actors
