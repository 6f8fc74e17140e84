// The rounds whose certificates a data shard has checked, and the commits that wait for the proof
// of their round. A commit speaks for all members of a round. Each member has signed its own
// samples in the roster, so a proven commit ends only leases whose owner agreed to that round.
//
// Steps:
// - A commit of a proven round is cut down to the entries that its members signed.
// - Another commit waits, for a moment for the proof that members send by themselves. Then its
//   first sender is asked for the proof, and after `timeout` the next one. When all were asked in
//   vain, the commits of the round are refused.
//
// Left out: the number of parts that hold a member's gradient. It is the word of the member that
// commits. Two members that say different numbers are reported (sample_ledger.hpp).
//
// Limits: the latest most_rounds rounds; for each member most_waiting commits, and the ranges of
// one message. A plain state machine.
#pragma once

#include "actors/averaging/certificate.hpp"
#include "actors/data/messages.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace shoal::actors {

class commit_proofs {
public:
  static constexpr std::size_t most_rounds = 1024;
  static constexpr std::size_t most_waiting = 128;

  explicit commit_proofs(std::size_t max_ranges, duration timeout = std::chrono::seconds(5))
      : max_ranges_(max_ranges), timeout_(timeout) {}

  // -- proven rounds

  bool proven(const group_id& round) const { return rounds_.contains(round); }
  /// Requires: the certificate is checked, and each member's peer is the one behind its address.
  void prove(const round_certificate& certificate);

  struct entry {
    peer_id peer = 0;
    member_id member;
    std::vector<sample_range> ranges; ///< ascending, without overlap
    std::uint32_t parts_included = 0;
  };
  /// The entries of a commit that members of its round have signed. Entries of members that
  /// declined, or that signed impossible samples, are left out. Errors: the commit and the roster
  /// disagree. Requires: proven(what.group).
  result<std::vector<entry>> agreed(const commit& what) const;

  // -- commits without proof

  struct waiting {
    commit what;
    member_id member;
    caf::actor from;
    std::function<void()> then; ///< confirms the commit
  };
  /// Keeps a commit until its round is proven. False if its member has too many already.
  bool wait(waiting what, duration now);
  /// The senders that are to be asked for a proof now.
  struct question {
    group_id round;
    caf::actor to;
  };
  std::vector<question> ask(duration now);
  /// The commits of a round, and of rounds for which everybody was asked in vain.
  std::vector<waiting> take(const group_id& round);
  std::vector<waiting> take_hopeless(duration now);
  /// The member has no proof, so the next one is asked. Returns its commits of that round.
  std::vector<waiting> take_of(const group_id& round, const member_id& member);
  /// True if the member was asked for the proof of this round.
  bool was_asked(const group_id& round, const member_id& member) const;
  bool waits() const noexcept { return !pending_.empty(); }
  /// How often ask() is due while commits wait.
  duration period() const noexcept { return timeout_ / 5; }
  /// Drops the waiting commits. Their senders repeat them.
  void forget_waiting();

private:
  struct member_samples {
    member_id member;
    std::vector<sample_range> ranges;
    bool takes_part = true;
  };
  struct round {
    std::uint64_t epoch = 0;
    std::map<peer_id, member_samples> members;
  };
  struct pending {
    std::deque<waiting> commits;
    std::size_t asked = 0; ///< the first so many senders were asked
    duration asked_at{};   ///< or when the first commit came
  };
  struct share {
    std::size_t commits = 0, ranges = 0;
  };
  static std::size_t ranges_of(const commit& what);
  void release(const waiting& what);

  std::size_t max_ranges_;
  duration timeout_;
  std::map<group_id, round> rounds_;
  std::deque<group_id> order_; // oldest first
  std::map<group_id, pending> pending_;
  std::map<member_id, share> shares_;
};

} // namespace shoal::actors
