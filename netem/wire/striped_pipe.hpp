// One pipe over several connections, the stripes. On a long line with loss, one TCP connection has
// a small window, and several have several. Each frame goes to the stripe with the fewest queued
// bytes, and has a number. The receiver hands frames on in the order of their numbers. A long
// message is several frames (message_frames.hpp), so it uses several stripes.
//
// The first frame of each stripe names its pipe, its place, and the count of stripes. The other
// side collects the stripes of one pipe (stripe_sets). The stripes of a pipe have one certificate.
//
// When a stripe closes, the others send what they have queued and close, too.
#pragma once

#include "netem/event_queue.hpp"
#include "netem/tcp.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/pipe.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::netem::wire {

/// The kind of a stripe, as pipe::kind() has it.
inline constexpr const char* stripe_kind = "stripe";
inline constexpr std::size_t most_stripes = most_connections;

/// The first frame of a stripe.
struct stripe_greeting {
  std::uint64_t token = 0; ///< the pipe's, the same on all its stripes
  std::uint8_t which = 0, count = 0;
};
frame to_frame(const stripe_greeting& what);
/// Returns nothing if no correct host sends these bytes.
std::optional<stripe_greeting> read_stripe_greeting(std::span<const std::byte> bytes);

class striped_pipe final : public pipe,
                           public receive_window,
                           public std::enable_shared_from_this<striped_pipe> {
public:
  /// A pipe whose stripes come one by one.
  striped_pipe(std::string kind, std::size_t count);
  /// A pipe over stripes that this host has opened and not started.
  static std::shared_ptr<striped_pipe> over(std::string kind, std::uint64_t token,
                                            std::vector<std::shared_ptr<pipe>> stripes);

  // -- the other side's stripes, before start() or after it ----

  /// Takes a stripe. Returns false if its place is taken.
  bool add(std::size_t which, std::shared_ptr<pipe> stripe);
  bool is_complete() const;
  /// A frame came on a stripe, after its greeting.
  void came(std::size_t which, const payload& bytes);
  void stripe_closed(const std::string& why);

  // -- pipe. Requires: all stripes are there. ----

  void start(std::function<void(payload)> on_frame,
             std::function<void(const std::string&)> on_closed) override;
  void send(frame what) override;
  void finish() override;
  void close() override;
  std::size_t queued_bytes() const override;
  receive_window& window() override { return *this; }
  void add(std::size_t bytes) override;
  void remove(std::size_t bytes) override;
  bool malformed() const override;
  bool held_back() const override;
  std::string certificate() const override { return stripes_[0]->certificate(); }
  std::string peer() const override { return stripes_[0]->peer(); }
  const std::string& kind() const override { return kind_; }

private:
  struct early_frame {
    payload bytes;
    std::size_t which;   // the stripe
    std::size_t charged; // to that stripe's window
  };
  std::vector<std::shared_ptr<pipe>> stripes() const;
  void hand_on(std::unique_lock<std::mutex>& lock);

  const std::string kind_;
  std::optional<std::uint64_t> greets_; // the token, on the side that dialled
  std::vector<std::shared_ptr<pipe>> stripes_;

  std::mutex sending_; // guards the next two; held while a frame is put on its stripe
  std::uint64_t sent_ = 0;
  std::size_t latest_ = 0; // the stripe of the last frame

  mutable std::mutex mutex_; // guards the members below
  std::function<void(payload)> on_frame_;
  std::function<void(const std::string&)> on_closed_;
  std::uint64_t next_ = 0; // the number of the next frame to hand on
  std::map<std::uint64_t, early_frame> early_;
  bool started_ = false, handing_on_ = false, malformed_ = false;
  std::size_t closed_ = 0; // stripes
  std::string why_;        // the first stripe closed
};

/// Collects the stripes that other processes open. Thread safety: all.
class stripe_sets : public std::enable_shared_from_this<stripe_sets> {
public:
  /// `complete` takes each pipe whose stripes have all come.
  stripe_sets(std::string kind, std::function<void(std::shared_ptr<pipe>)> complete)
      : kind_(std::move(kind)), complete_(std::move(complete)) {}

  void incoming(std::shared_ptr<pipe> stripe, duration now);
  /// Closes what waits for more than `limit`.
  void close_overdue(duration now, duration limit);
  void close();

private:
  /// Stripes that wait, in all and of one certificate.
  static constexpr std::size_t most_waiting = 512, most_waiting_of_one = 64;

  struct waiting_stripe {
    std::shared_ptr<pipe> stripe;
    std::string certificate;
    duration since{};
    std::shared_ptr<striped_pipe> in; // null before its greeting
  };
  using set_key = std::pair<std::string, std::uint64_t>; // certificate, token
  struct waiting_set {
    std::size_t count;
    std::shared_ptr<striped_pipe> pipe;
  };
  /// Returns the stripe's pipe; null if no correct host sends this.
  std::shared_ptr<striped_pipe> greeted(const pipe* stripe, const payload& bytes,
                                        std::size_t& which);
  void stripe_closed(const pipe* stripe);

  const std::string kind_;
  const std::function<void(std::shared_ptr<pipe>)> complete_;
  std::mutex mutex_; // guards the members below
  bool stopped_ = false;
  std::map<const pipe*, waiting_stripe> waiting_;
  std::map<set_key, waiting_set> sets_;
};

} // namespace shoal::netem::wire
