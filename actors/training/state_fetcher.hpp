// Downloads the leading state for a joiner: parameters, optimizer state and epoch, in chunks from
// several donors at once, checked by hash. One actor for one attempt; its owner gets one
// state_report. A donor that dies, refuses, lacks the state or is silent is left out; its chunks are asked of
// the others.
// Bytes on the wire: the state once, plus what dead donors had not finished.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>

#include "actors/protocol_actor.hpp"
#include "actors/training/workload.hpp"

namespace shoal::actors {

/// Local message to the owner; `state` is empty if no donor could deliver.
struct state_report {
  state_ptr state;
};

struct fetch_config {
  std::uint64_t chunk_bytes = 256 * 1024;
  std::uint32_t window_chunks = 2;               ///< asked of one donor at a time
  duration donor_timeout = std::chrono::seconds(30);
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
};

class state_fetcher final : public protocol_actor {
 public:
  /// `donors`: best first. `expected_bytes`: the size of our own state; an offer of another size is refused.
  state_fetcher(caf::actor_config& config, host& on, caf::actor owner, fetch_config options,
                std::vector<caf::actor> donors, std::uint64_t expected_bytes, bool hollow);

  caf::behavior make_behavior() override;
  void on_exit() override;

 private:
  struct donor {
    caf::actor address;
    std::set<std::uint64_t> asked;    // offsets
    bool gone = false;
    duration last_progress{};
  };

  void on_down(const caf::actor_addr& whom) override;
  void on_offer(const state_offer& offer);
  void on_refused();
  void on_chunk(const state_chunk& chunk);
  void ask();
  void drop(donor& which);
  void look_for_silence();
  void finish();
  void report(state_ptr state);
  donor* sender_donor();

  caf::actor owner_;
  fetch_config options_;
  std::vector<donor> donors_;
  std::uint64_t expected_bytes_;
  bool hollow_;
  bool have_offer_ = false;
  state_offer offer_;
  std::set<std::uint64_t> missing_;   // offsets nobody was asked for
  std::uint64_t outstanding_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::state_report)
