// One link to another host: a pipe for control, a pipe for bulk, and the link's state. The
// local_host's lock guards all fields except those that say otherwise.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/event_queue.hpp"
#include "netem/wire/admission.hpp"
#include "netem/wire/allowance.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/pipe.hpp"
#include "netem/wire/refusal.hpp"

#include <caf/node_id.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace shoal::netem::wire {

/// The names of the two pipes of a link, by index.
inline constexpr std::array<const char*, 2> pipe_kinds{"control", "bulk"};

/// Limits the frames that are read from one pipe in a second.
class frame_rate {
public:
  /// Counts a frame. If the frame is the last allowed one of this second, returns the time at which
  /// reading may go on.
  std::optional<duration> count(duration now, std::uint64_t most_frames);

private:
  std::uint64_t frames_ = 0;
  duration counted_from_{};
};

/// The bytes of a link's incomplete messages, and their share of the process's total. A window does
/// not count them, since a message may be larger than the window.
class incomplete_bytes {
public:
  /// One message and small ones beside it.
  static constexpr std::size_t most_of_link = max_message_bytes + (std::size_t{8} << 20);

  ~incomplete_bytes() {
    if (total_) *total_ -= own_;
  }
  /// Must be called once, before changed().
  void count_in(std::shared_ptr<std::atomic<std::uint64_t>> total) { total_ = std::move(total); }
  /// A message on one pipe had `before` bytes, and has `after` now. Returns false if the link, or
  /// the process, holds too many. Thread safety: all.
  bool changed(std::size_t before, std::size_t after, std::uint64_t most);

private:
  std::shared_ptr<std::atomic<std::uint64_t>> total_;
  std::atomic<std::uint64_t> own_{0};
};

struct host_link {
  struct direction {
    std::shared_ptr<pipe> through;
    bool hello = false;  ///< the other side's hello has come
    bool list = false;   ///< a revocation list has come before the link was up
    bool closed = false; ///< the pipe is closed
    bool left = false;   ///< the other side said goodbye: no frame follows
    duration heard{};    ///< when the last frame came
    // The thread that reads the pipe uses the next two members, and only while the link is up.
    frame_rate rate;
    message_assembly messages;
  };

  std::uint64_t token = 0; ///< both hellos carry it
  bool dialled = false;    ///< by this host
  std::mutex greeting;     ///< held while a hello is checked; taken before the local host's lock
  // The local host's lock guards writes; any thread may read.
  std::atomic<bool> up{false}, closed{false}, misbehaved{false};
  direction pipes[2];                                         ///< control, bulk
  std::atomic<duration> last_sent[2]{duration{}, duration{}}; ///< one for each pipe; any thread
  hello theirs;
  certified_member certified;      ///< by the other side's certificate; empty without keys
  host_index host = no_host;       ///< the other side, once the link is up
  caf::node_id node;               ///< the other side, once the link is up
  std::string target;              ///< the address that was dialled
  std::optional<node_key> relayed; ///< the other end, if the link goes over a relay
  std::weak_ptr<host_link> relay;  ///< the link to that relay
  refusal refused = refusal::none; ///< the other side's reason to refuse the link
  bool refused_by_us = false;
  std::string refused_text;
  /// The links that may begin over this one, if it goes to a relay.
  allowance relayed_begins{512, std::chrono::minutes(1)};
  std::uint64_t said_service = 0; ///< the service in this host's hello
  duration since{};
  std::set<std::uint32_t> watched; ///< actors of this host that the other side observes
  std::deque<frame> waiting;       ///< bulk that waits for its turn (pacer.hpp)
  std::size_t waiting_bytes = 0;
  /// when the last ping of measure() was sent; the smoothed round trip
  duration asked{}, round_trip{};
  std::atomic<std::uint64_t> received{0}; ///< bytes
  incomplete_bytes incomplete;            ///< any thread
  std::uint64_t sent = 0;                 ///< bytes
  struct traffic {
    duration when;
    std::uint64_t sent, received;
  };
  std::deque<traffic> lately; ///< the last minute, the oldest first

  /// The other side, as fault_record.hpp knows it.
  const std::string& who() const noexcept {
    return certified.identity.empty() ? theirs.name : certified.identity;
  }
  void send(bool bulk, frame what, duration now);
  /// Sends a ping for the round trip and records the traffic, every few seconds.
  void measure(duration now);
  /// Takes the answer to a ping of measure(). Ignores any other stamp.
  void pong_came(std::uint64_t stamp, duration now);

  struct bit_rates {
    double sends = 0, receives = 0; ///< bits/s over the last minute
  };
  bit_rates rates(duration now) const;

  /// Pings on pipes that were idle for a quarter of `limit`. Returns true if a pipe was silent for
  /// `limit`. `stopped`: this process itself was stopped, so the silence is no evidence.
  /// Requires: the link is up.
  bool keep_alive(duration now, duration limit, bool stopped);
};

} // namespace shoal::netem::wire
