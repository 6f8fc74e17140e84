// How a peer that is out of sync comes back: when it downloads what, from whom, and when it gives
// up for a while. A plain state machine; the actor that owns it runs the downloads
// (actors/training/state_fetcher.hpp).
//
// No joiner downloads for ever. A peer that is out of sync downloads the leading state once. If the
// swarm has gone on meanwhile, the peer downloads the steps that it has missed, one after the
// other, and repeats them; its donors keep them for it (actors/training/state_shelf.hpp has the
// argument why that ends). A peer that has missed few steps, smaller in all than its state,
// downloads no state at all. When nobody has the next step any more, the peer starts over from a
// newer state. A peer whose line is too slow falls further behind with each step, by
// most_further_behind at last, or starts over most_states_in_vain times: then it is too_slow, and
// pauses, each time twice as long, before it tries again.
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
#include <variant>
#include <vector>

namespace shoal::actors {

class state_catch_up {
public:
  struct settings {
    fetch_config fetch;
    duration max_refresh{}; ///< between attempts when nobody can be asked
    duration
        matchmaking_time{}; ///< a part of it is what a round waits for a peer that arrives soon
    bool one_branch = true; ///< all peers of a branch hold the same bits
    bool repeats_steps =
        true; ///< a step is the same for everybody, and can be downloaded and repeated
    std::uint64_t step_bytes = 0;   ///< of one such step
    std::uint64_t method_bytes = 0; ///< of model_state::method_state, where a state has one
    bool hollow = false;
  };
  explicit state_catch_up(settings how) : how_(how) {}

  /// The peer's knowledge when a download begins.
  struct situation {
    const progress_table& others;
    branch own, leading;
    const model_state& state;
    std::uint64_t rate_down = 0; ///< bit/s
    /// Donors that nobody can reach are of no use: nobody can reach this peer either, or it does
    /// not know yet.
    bool needs_reachable_donors = false;
  };

  enum class verdict : std::uint8_t {
    not_yet,  ///< a pause is not over
    too_slow, ///< the peer pauses for `pause`
    nobody,   ///< there is nobody to ask; to be tried again after `pause`
    download,
  };
  struct plan {
    verdict what = verdict::not_yet;
    duration pause{};
    fetch_config fetch;
    std::vector<expected_peer> donors;
    std::shared_ptr<state_download> download;
    bool arrives_soon = false; ///< the others may wait for this peer with their next round
  };
  /// Begins to catch up. Requires: `at.own` is not `at.leading`, or steps are missing.
  plan begin(const situation& at, duration now);
  /// Begins to download the step that leads on from the peer's state, while the peer goes on
  /// computing. `nobody`: nobody has it.
  plan begin_step(const situation& at);
  std::vector<expected_peer> more_donors_for(const donors_wanted& what, const situation& at);
  /// The peers that have what the peer should have.
  std::vector<peer_id> donors(const progress_table& others, const branch& leading) const;

  /// A download has ended; to be observed. result() follows.
  download_ended ended(const download_report& report);
  /// Whether the download that is under way, or has just ended, is one of begin_step().
  bool aside() const noexcept { return aside_; }
  /// The step that begin_step() was for; none: the download failed.
  std::optional<taken_step> take_step_aside(const download_report& report);
  /// What begin() was for. `own`: the peer's state. monostate: the download failed.
  std::variant<std::monostate, taken_step, model_state> take_result(const download_report& report,
                                                                    const state_id& own);

  /// That step turned out not to lead on from `own`.
  void reject_step(const state_id& own) { no_step_from_ = own; }
  /// The peer takes over a state that it has downloaded; a `whole` one, or one that it made by a
  /// step.
  void adopted(bool whole);
  /// Whether the peer has to download on, now that it is at `own`.
  bool goes_on(const progress_table& others, const branch& own, const branch& leading);
  /// The peer is with the others again.
  void arrived();

  /// The branch that the peer will be on soon, as its record may say; none: the download takes
  /// long.
  const std::optional<branch>& arriving() const noexcept { return arriving_; }
  void nears_end(const branch& leading) { arriving_ = leading; }

private:
  fetch_config fetch_on(std::uint64_t rate_down) const;
  /// The best `most` of `ids`, which count as tried from now on.
  std::vector<expected_peer> choose(std::vector<peer_id> ids, std::size_t most,
                                    const situation& at);
  bool downloads_step(const situation& at, std::uint64_t behind) const;
  plan give_up(duration now);

  settings how_;
  std::set<peer_id> tried_;      // since the peer took over a state last
  std::set<peer_id> faulty_;     // sent other bytes than they had offered
  std::vector<peer_id> holders_; // had what was downloaded last, and so keep the steps from it on
  std::shared_ptr<state_download> download_; // under way, or to be resumed
  bool step_ = false;                        // the download of begin() is one of a step
  bool aside_ = false;                       // one of begin_step() is under way
  bool catching_up_ = false;          // a state was downloaded, and the swarm has gone on meanwhile
  std::uint64_t behind_at_first_ = 0; // how many steps then
  state_id no_step_from_;             // nobody had the step from this state on
  unsigned states_in_vain_ = 0, pauses_ = 0; // since the peer was last in sync
  std::optional<branch> arriving_;
  duration not_before_{};
};

} // namespace shoal::actors
