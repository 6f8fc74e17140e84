// Decides which branch leads. A progress record only says that a peer claims another state. This
// machine then says which peer to ask for a chain (actors/trust/chain.hpp), and compares the chains
// that were proven. A plain state machine; its owner sends the questions and checks the
// certificates.
//
// A branch leads this peer under two conditions. The branch's chain leads the peer's own by the
// fork rule, from their last common state on. The chain also has more than half as many supporters
// as there are members beside this peer, with this peer. A member beside this peer has a record at
// the peer's head or one step before it. The member also took part in one of the last steps. A
// member that steps alone thus leads nobody away while the others compute. A group of full size
// needs no more supporters. A round asks for as many members as it takes to lead all others on
// (members_needed).
//
// Members that follow a chain support it, too. Their records are on the chain, and they took part
// in one of the last steps before the chains part. Otherwise two small groups that step from one
// state could stay apart. A group without followers would keep its chain for its smaller id. The
// other group would be too large to follow it.
//
// A proven chain that does not lead yet stays known. The peer compares it again when records come.
//
// Questions. One peer is asked for each claimed state, at most `most_questions` at a time, the
// state with the most claimants first. A peer that does not answer in time is not asked again until
// its record has another state. The same holds for a peer whose chain does not lead. The pause
// before the next question to that peer doubles. So a false claim costs the others one small
// message now and then, and no round waits for the claim.
#pragma once

#include "actors/training/progress.hpp"
#include "actors/trust/chain.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace shoal::actors {

class chain_follower {
public:
  struct settings {
    duration timeout = std::chrono::seconds(5); ///< for one page of an answer
    duration most_pause = std::chrono::minutes(10);
    std::size_t group_size = 256;
  };
  static constexpr std::size_t most_questions = 4;
  static constexpr std::size_t most_waiting = 4; ///< proven chains that do not lead yet

  chain_follower(settings how, chain_point start, member_id self);

  const chain& own() const noexcept { return own_; }
  /// The head of the leading branch: the peer's own head unless another branch is proven to lead.
  const chain_point& leading() const noexcept {
    return ahead_.empty() ? own_.head() : ahead_.back()->after;
  }
  /// True if the state is on the own chain or on the leading branch.
  bool knows(const chain_point& state) const;
  /// The step to a state of the leading branch or of the own chain; null if there is none.
  step_ptr step_to(const chain_point& state) const;
  /// The step after a state of the leading branch, which names the root of that state.
  step_ptr step_from(const chain_point& state) const;
  /// The certificate of one of the last steps; null if none of them is of this round.
  std::shared_ptr<const round_certificate> certificate_of(const group_id& round) const;
  /// True if the peer may move to this state: it is on the leading branch, and the own chain does
  /// not lead there.
  bool may_adopt(const chain_point& state) const;
  /// True if the steps of the leading branch lead on from the peer's own state.
  bool is_behind() const noexcept { return fork_ == own_.head(); }

  // Events at the owner.
  /// The owner has taken this step in a round of its own.
  void stepped(const step_ptr& step);
  /// The owner's state is now a state of the leading branch. Requires: may_adopt(state).
  void adopted(const chain_point& state);

  struct question {
    peer_id peer = 0;
    caf::actor to;
    std::vector<chain_point> locator;
  };
  /// The questions that are due. With `max_wait`, the owner is in a round, which may itself lead to
  /// the next state. Claims of the next epoch then count only when they are so old.
  std::vector<question> ask(const progress_table& claims, std::optional<duration> max_wait,
                            duration now);
  duration timeout() const noexcept { return how_.timeout; }
  /// The number of members that have to take the result of a round from the own head, so that its
  /// step leads all others on. These are more than a third of the members near this peer, with this
  /// peer, or half of those beside it.
  std::size_t members_needed(const progress_table& claims) const;
  /// True if a question is open.
  bool asks() const noexcept { return !open_.empty(); }

  // Answers.
  /// True if a question to this peer is open.
  bool was_asked(peer_id peer) const { return open_.contains(peer); }
  /// The page of an answer begins after `common` and has these proven steps. `more`: the peer has
  /// further steps. Returns the next question, to the same peer.
  std::optional<question> answered(peer_id peer, const chain_point& common,
                                   const std::vector<step_ptr>& steps, bool more,
                                   const progress_table& claims, duration now);
  /// The peer's answer is wrong, or says that it has no common state.
  void refuted(peer_id peer, duration now);
  /// The peer at that address will not answer. Returns true if a question to it was open.
  bool lost(const caf::actor_addr& address, duration now);
  /// Gives up the questions that are too old.
  void expire(duration now);

private:
  struct open_question {
    chain_point claim;
    member_id member;
    caf::actor to;
    duration asked{};
    // The chain that the pages so far have proven.
    std::optional<chain_point> fork;
    std::vector<step_ptr> steps;
  };
  /// The chain up to `fork` of the own one, then `steps`.
  struct candidate {
    chain_point fork;
    std::vector<step_ptr> steps;
  };
  struct memory {
    chain_point claim; ///< the last one that the peer was asked about
    unsigned failures = 0;
    duration not_before{};
  };

  bool is_ahead(const chain_point& state) const;
  std::vector<chain_point> locator() const;
  /// The members at the own head or one step before it, with this one.
  std::set<member_id> members_near(const progress_table& claims) const;
  /// The near members that took part lately, with this one: the members beside this peer.
  std::set<member_id> active_of(std::set<member_id> near) const;
  /// The members that took part in one of the last steps before a state. Requires:
  /// own_.contains(state).
  std::set<member_id> active_at(const chain_point& state) const;
  /// The members that took part in the steps or follow them. Requires: own_.contains(fork).
  std::set<member_id> supporters_of(const chain_point& fork, std::span<const step_ptr> steps,
                                    const progress_table& claims) const;
  /// The number of members beside this peer without the supporters.
  std::size_t others_beside(const std::set<member_id>& supporters,
                            const progress_table& claims) const;
  bool leads_own(const candidate& what, const progress_table& claims) const;
  bool leads_ahead(const candidate& what, const progress_table& claims) const;
  /// Makes the candidate the leading branch if it leads now.
  bool take_lead(const candidate& what, const progress_table& claims);
  /// Compares the waiting chains with the leading one.
  void compare_again(const progress_table& claims);
  void wait_for_support(candidate what);
  bool waits(const chain_point& head) const;
  void leave_out_shared(candidate& of) const;
  using questions = std::map<peer_id, open_question>;
  /// Ends the question and returns the one after it.
  questions::iterator failed(questions::iterator which, duration now);

  settings how_;
  member_id self_;
  chain own_;
  // The leading branch, if it is another one: own_ up to fork_, then ahead_.
  chain_point fork_;
  std::vector<step_ptr> ahead_;
  std::deque<candidate> waiting_; ///< the oldest first
  questions open_;
  std::map<peer_id, memory> asked_;
};

} // namespace shoal::actors
