// Downloads one object for a joiner: the leading state, or a missed step
// (actors/training/state_object.hpp). The chunks come from several donors concurrently, and each is
// checked against its hash. One actor runs one attempt and sends its owner one download_report.
//
// Steps:
// 1. The actor asks every donor for its offer. It downloads the version that most donors offer, and
//   begins with the first offer.
// 2. The actor asks each donor of that version for `window_chunks` chunks at a time. Reserve donors
//   only keep the object.
// 3. A donor that dies, falls silent, is busy or lacks the object is dropped, and its chunks are
//   asked of others. A reserve takes its place, and the actor asks its owner for another donor.
//   With averaged parameters, each donor has a state of its own. The download then starts over with
//   another state once no donor of the first one is left.
// 4. A donor that sends a chunk with a wrong hash is never asked again. Verified chunks stay.
//
// The state_download keeps verified chunks, so that a later attempt resumes.
//
// Bytes on the wire: the object once, 16 bytes of hash for each chunk from each donor. In addition,
// at most `window_chunks` chunks of each donor that died.
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
#include <string>
#include <vector>

namespace shoal::actors {

/// Local message to the owner: the attempt is over.
struct download_report {
  reason why = reason::none;    ///< none: the download is complete
  std::uint64_t bytes = 0;      ///< bytes of the chunks that arrived in this attempt
  std::uint64_t rejected = 0;   ///< bytes of the chunks with a wrong hash
  std::uint32_t donors = 0;     ///< donors that sent at least one chunk
  std::vector<peer_id> holders; ///< live peers that have the object
  std::vector<peer_id> faulty;
  std::vector<commit> commits; ///< unanswered commits from the holders' offers, each once
};

/// Local message to the owner, once: at most `announce_bytes` of the state are missing, or of the
/// step to it.
struct download_nears_end {
  std::uint64_t epoch = 0;
  state_id state;
};

/// Local message to the owner: asks for more donors. The owner answers with more_donors, which may
/// be empty.
struct donors_wanted {
  std::size_t count = 0;
  std::optional<std::uint64_t> epoch; ///< epoch of the object, if a donor has offered it
};
struct more_donors {
  std::vector<expected_peer> donors;
};

struct fetch_config {
  std::uint64_t chunk_bytes = 256 * 1024; ///< size of the chunks that this peer serves
  std::uint32_t window_chunks = 2;        ///< chunks under way from one donor
  std::uint32_t window_total = 1 << 16;   ///< chunks under way from all donors; at least one
  std::size_t donors = 3;                 ///< donors that send chunks
  std::size_t reserves = 0;               ///< donors that only keep the object
  std::uint64_t announce_bytes = 0;       ///< when to send download_nears_end
  duration donor_timeout = std::chrono::seconds(30);
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
};

class state_fetcher final : public protocol_actor {
public:
  /// `donors`: best first. The fetcher alone uses `download` until its report. Requires: `download`
  /// is not complete.
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
    // The version of its offer.
    std::optional<id128> offered;
    std::vector<commit> commits; // in its offer
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
  /// Drops a donor that sent what no correct one sends, and names it in the report.
  void expose(donor& which, std::string lie);
  void fill_up();
  void turn_to_another();
  void look();
  void report(reason why);
  donor* sender_donor();
  /// The donors that may still deliver.
  std::size_t living(bool reserves) const;

  caf::actor owner_;
  fetch_config options_;
  std::vector<expected_peer> first_;
  std::vector<donor> donors_;
  std::map<id128, state_offer> offers_; // by version
  std::shared_ptr<state_download> download_;
  bool announced_ = false;
  bool asked_owner_ = false, owner_knows_nobody_ = false;
  std::size_t lacking_ = 0; // donors without the object
  reason trouble_ = reason::donors_lost;
  download_report report_;
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::download_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::download_nears_end)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::donors_wanted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::more_donors)
