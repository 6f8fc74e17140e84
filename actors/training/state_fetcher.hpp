// Downloads an object for a joiner: the leading state, or a step that was missed
// (actors/training/state_object.hpp). In chunks, from several donors at once, each chunk checked by
// its hash. One actor for one attempt; its owner gets one download_report.
//
// Steps: 1. every donor is asked for its offer; what most of those who answer offer is downloaded,
// from the first offer on;
//   2. each donor that offers the same is asked for chunks, `window_chunks` of them at a time;
//   reserves are only asked to keep it;
//   3. a donor that dies, is silent, busy, or has no such object is left out, and its chunks are
//   asked of the others; a reserve takes its
//      place, and the owner is asked for a further one; where each has a state of its own (averaged
//      parameters), who offered another one is turned to when nobody is left who has the one that
//      was begun with;
//   4. who sends a chunk that is not what its hash says is never asked again; all other chunks
//   stay.
// Verified chunks stay in the state_download, so that a later attempt goes on where this one ended.
// Bytes on the wire: the object once, a list of hashes (16 bytes a chunk) from each donor, and at
// most `window_chunks` chunks of each donor
//   that died.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/training/messages.hpp"
#include "actors/training/state_object.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace shoal::actors {

/// Local message to the owner: this attempt is over.
struct download_report {
  reason why = reason::none;    ///< none: the download is complete
  std::uint64_t bytes = 0;      ///< of chunks that came in this attempt
  std::uint64_t rejected = 0;   ///< of these: of chunks that were not what was promised
  std::uint32_t donors = 0;     ///< who sent at least one
  std::vector<peer_id> holders; ///< who has the object and lives
  std::vector<peer_id> liars;
  std::vector<commit> commits; ///< that those who have the object know to be unanswered, each once
};

/// Local message to the owner, once: at most `announce_bytes` are still to come of this state, or
/// of the step to it.
struct download_nears_end {
  std::uint64_t epoch = 0;
  state_id state;
};

/// Local message to the owner: whom else could we ask? Answered by more_donors, which may be empty.
struct donors_wanted {
  std::size_t count = 0;
  std::optional<std::uint64_t> epoch; ///< of what is downloaded, if somebody has offered it
};
struct more_donors {
  std::vector<expected_peer> donors;
};

struct fetch_config {
  std::uint64_t chunk_bytes = 256 * 1024; ///< as a donor
  std::uint32_t window_chunks = 2;        ///< asked of one donor at a time
  std::uint32_t window_total = 1 << 16;   ///< and of all of them; at least one
  std::size_t donors = 3;                 ///< asked for chunks
  std::size_t reserves = 0;               ///< asked to keep the object
  std::uint64_t announce_bytes = 0;       ///< download_nears_end
  duration donor_timeout = std::chrono::seconds(30);
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
};

class state_fetcher final : public protocol_actor {
public:
  /// `donors`: best first. `download` is ours until the report. Requires: it is not complete.
  state_fetcher(caf::actor_config& config, host& on, caf::actor owner, fetch_config options,
                std::vector<expected_peer> donors, std::shared_ptr<state_download> download);

  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  struct donor {
    peer_id peer = 0;
    caf::actor address;
    bool reserve = false;
    std::set<std::uint64_t> asked; // offsets
    std::optional<id128> offered;  // which version
    std::vector<commit> commits;   // in its offer
    bool delivered = false;
    bool gone = false;
    duration last_progress{};
  };

  void on_down(const caf::actor_addr& whom) override;
  void on_offer(const state_offer& offer);
  void on_refused(const state_refused& refusal);
  void on_chunk(const state_chunk& chunk);
  void on_more(const more_donors& more);
  void add(const expected_peer& who);
  void choose();
  void ask();
  void drop(donor& which, reason why);
  void fill_up();
  void turn_to_another();
  void look();
  void report(reason why);
  donor* sender_donor();
  /// Those who may still deliver.
  std::size_t living(bool reserves) const;

  caf::actor owner_;
  fetch_config options_;
  std::vector<expected_peer> first_;
  std::vector<donor> donors_;
  std::map<id128, state_offer> offers_; // by version
  std::shared_ptr<state_download> download_;
  bool announced_ = false;
  bool asked_owner_ = false, owner_knows_nobody_ = false;
  std::size_t lacking_ = 0; // donors that have no such object
  reason trouble_ = reason::donors_lost;
  download_report report_;
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::download_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::download_nears_end)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::donors_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::more_donors)
