// Decides how an out-of-sync peer catches up: when it downloads which object, from which donors,
// and when it pauses. A plain state machine; its owner runs the downloads
// (actors/training/state_fetcher.hpp).
//
// Every catch-up ends. The peer downloads the leading state once. Then it downloads the steps that
// the swarm has taken meanwhile, one after the other, and repeats them. Donors keep these steps for
// it; actors/training/state_cache.hpp shows why this ends. A peer that missed few steps, smaller in
// total than a state, downloads no state at all. If no donor has the next step, the peer starts
// over from a newer state. A peer with a slow line falls behind by most_further_behind steps, or
// starts over most_states_in_vain times. It is then too_slow, and pauses before it tries again.
// Each pause is twice as long as the last.
#pragma once

#include "actors/reasons.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/progress.hpp"
#include "actors/training/state_fetcher.hpp"
#include "actors/training/state_object.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::actors {

class state_catch_up {
public:
  struct settings {
    fetch_config fetch;
    duration max_refresh{}; ///< between attempts while no donor is known
    /// A round waits a part of this time for a peer that arrives soon.
    duration matchmaking_time{};
    bool one_branch = true; ///< all peers of a branch hold the same bits
    /// All peers take the same steps, so a peer can download and repeat them.
    bool repeats_steps = true;
    std::uint64_t step_bytes = 0;   ///< size of one step
    std::uint64_t method_bytes = 0; ///< size of model_state::method_state; 0 if states have none
    bool size_only = false;
    /// While the peer computes, it asks peers that have moved on for a step. Otherwise it asks
    /// peers that have the step and are still in the state before.
    bool follows_steps = false;
  };
  explicit state_catch_up(settings how) : how_(how) {}

  /// The peer's knowledge when a download begins.
  struct situation {
    const progress_table& others;
    branch own, leading;
    const model_state& state;
    std::uint64_t rate_down = 0; ///< bit/s
    /// Donors that cannot be reached are useless: this peer cannot be reached either, or does not
    /// know yet.
    bool needs_reachable_donors = false;
    /// Where states are certified: the latest state of the leading branch whose bits are, and
    /// their root. A zero root: there is none. A step leads on from it.
    struct target {
      std::uint64_t epoch = 0;
      state_id state;
      id128 root;
      bool by_steps = true; ///< the branch's steps lead on from the peer's own state
      state_id next{};      ///< with by_steps: the state after the next of them
      bool is_open = false; ///< an answer is due that may prove further states of the branch
      std::vector<std::pair<std::uint64_t, peer_id>> holders; ///< peers on the branch, with epochs
    };
    std::optional<target> certified{};
  };

  enum class verdict : std::uint8_t {
    not_yet,  ///< a pause is not over
    too_slow, ///< the peer pauses for `pause`
    nobody,   ///< no donor is known; the peer tries again after `pause`
    download,
  };
  struct plan {
    verdict what = verdict::not_yet;
    duration pause{};
    fetch_config fetch;
    std::vector<expected_peer> donors;
    std::shared_ptr<state_download> download;
    bool arrives_soon = false; ///< the others' next round may wait for this peer
  };
  /// Begins to catch up. Requires: `at.own` is not `at.leading`, or steps are missing.
  plan begin(const situation& at, duration now);
  /// Begins to download the step that leads on from the peer's state, while the peer computes on.
  /// `nobody`: no peer has the step.
  plan begin_step(const situation& at);
  std::vector<expected_peer> more_donors_for(const donors_wanted& what, const situation& at);
  /// The peers that have the object that this peer needs.
  std::vector<peer_id> donors(const progress_table& others, const branch& leading) const;

  /// A download has ended. The owner observes the result and then calls take_result().
  download_ended ended(const download_report& report);
  /// True if the current or last download belongs to begin_step().
  bool downloads_concurrently() const noexcept { return downloads_concurrently_; }
  /// The step of begin_step(); empty if the download failed.
  std::optional<taken_step> take_concurrent_step(const download_report& report);
  /// The object of begin(). `own` is the peer's state. monostate if the download failed.
  std::variant<std::monostate, taken_step, model_state> take_result(const download_report& report,
                                                                    const state_id& own);

  /// The downloaded step does not lead on from `own`, so a state is downloaded instead.
  void reject_step(const state_id& own) { no_step_from_ = own; }
  /// The donors of the last download have sent false bytes. Returns them. They are not asked again.
  const std::vector<peer_id>& distrust_donors() {
    faulty_.insert(holders_.begin(), holders_.end());
    return holders_;
  }
  /// The peer adopts a state: a `whole` downloaded one, or one that it made by a downloaded step.
  void adopted(bool whole);
  /// True if the peer, now at `own`, has to continue downloading.
  bool goes_on(const progress_table& others, const branch& own, const branch& leading);
  /// The peer is in sync again.
  void arrived();

  /// The branch that the peer will be on soon, for its record; empty if the download takes long.
  const std::optional<branch>& arriving() const noexcept { return arriving_; }
  void nears_end(const branch& leading) { arriving_ = leading; }

private:
  fetch_config fetch_on(std::uint64_t rate_down) const;
  /// The best `most` of `ids`. They count as tried.
  std::vector<expected_peer> choose(std::vector<peer_id> ids, std::size_t most,
                                    const situation& at);
  bool downloads_step(const situation& at, std::uint64_t behind) const;
  /// The peers that have the object of begin().
  std::vector<peer_id> holders(const situation& at, std::uint64_t epoch) const;
  std::vector<peer_id> step_holders(const situation& at) const;
  plan give_up(duration now);

  settings how_;
  std::set<peer_id> tried_;  // since the peer last adopted a state
  std::set<peer_id> faulty_; // peers that sent bytes other than offered
  // Donors of the last download, which keep the steps that follow it.
  std::vector<peer_id> holders_;
  std::shared_ptr<state_download> download_; // under way, or to be resumed
  bool step_ = false;                        // begin() downloads a step
  bool downloads_concurrently_ = false;      // a download of begin_step() is under way
  // A state was downloaded, and the swarm has moved on meanwhile.
  bool catching_up_ = false;
  std::uint64_t behind_at_first_ = 0;        // the number of steps behind at that time
  state_id no_step_from_;                    // no peer had the step from this state
  unsigned states_in_vain_ = 0, pauses_ = 0; // since the peer was last in sync
  std::optional<branch> arriving_;
  duration not_before_{};
};

} // namespace shoal::actors
