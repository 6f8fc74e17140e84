// The requests of a node: open ones, and ones that it gave up and that may still be answered. A
// plain state machine: its owner sends the messages, monitors the addresses, sets one timer and
// tells the time.
//
// Steps: a request is open until it is closed. After `slow_after` the request becomes slow, once,
// and the owner may ask other nodes. After `timeout` it has failed. A request that was given up is
// overdue: a late answer to it still counts.
#pragma once

#include "actors/dht/messages.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor_addr.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::actors {

class request_tracker {
public:
  enum class kind : std::uint8_t { bootstrap, ping, search, poll, put };

  struct request {
    kind what = kind::ping;
    contact to;               ///< the id is zero if only the address is known
    std::uint64_t search = 0; ///< the look-up that it belongs to
    std::string key;
    std::uint64_t after = 0; ///< the sequence number after which records were asked for
    duration asked{};        ///< set by open()
    unsigned again = 0;      ///< how often the same request was sent before
  };

  request_tracker(duration slow_after, duration timeout)
      : slow_after_(slow_after), timeout_(timeout) {}

  /// The owner sends a request now. True if its address has no other open request: the owner starts
  /// to monitor the address.
  bool open(std::uint64_t token, request what, duration now);
  /// The open request with that token; null if there is none.
  const request* find(std::uint64_t token) const;

  struct closed_request {
    request what;
    bool was_last =
        false; ///< no other request to the address is open: the owner stops monitoring it
  };
  /// Closes an open request. `answered`: the answer came now. Requires: find(token) is not null.
  closed_request close(std::uint64_t token, duration now, bool answered);
  /// True if the node has answered another request since this open one was sent.
  bool answered_since(std::uint64_t token) const;
  /// True if a request to that node is open.
  bool asks(const node_id& who) const;
  /// The owner does not monitor a lost address any more. Returns the open requests to it,
  /// ascending.
  /// ascending.
  std::vector<std::uint64_t> lost(const caf::actor_addr& address);

  /// Keeps a closed request for a late answer. With too many, the oldest is forgotten.
  void give_up(std::uint64_t token, const request& what);
  /// The request that was given up under that token; null if there is none.
  const request* overdue(std::uint64_t token) const;
  /// Forgets an overdue request. Requires: overdue(token) is not null.
  request take_overdue(std::uint64_t token);

  // One timer serves all requests, because nearly all are answered before their timeout.
  /// The delay after which the owner's timer has to fire. Empty if none is needed, or if a timer
  /// that is set fires early enough.
  std::optional<duration> next_timer(duration now);
  /// The timer has fired. False if a later call of next_timer() replaced that timer.
  bool timer_fired(duration now);
  /// The next open request that has become slow. The owner calls this until it is empty, then
  /// next_failed().
  std::optional<std::uint64_t> next_slow(duration now);
  /// The next open request that has failed; the owner closes it.
  std::optional<std::uint64_t> next_failed(duration now);

  static constexpr std::size_t most_overdue = 256;

private:
  struct watch {
    unsigned open = 0;
    duration answered{duration::min()}; // when a request to the address was last answered
  };
  struct deadline {
    duration at{};
    std::uint64_t token = 0;
  };

  duration slow_after_, timeout_;
  std::map<std::uint64_t, request> open_, overdue_;
  std::map<caf::actor_addr, watch> watched_; // by the address of open requests
  std::deque<deadline> slow_, late_;         // ascending; may hold closed requests
  std::optional<duration> timer_;            // when the owner's timer fires
};

} // namespace shoal::actors
