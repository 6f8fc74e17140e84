// The sessions of an inference server, and the quota of its cache. A plain state machine.
//   cost of a session = sequences * tokens reserved * layers
// A session's cost is reserved when it opens, for its largest length. So a session that has begun
// never lacks cache.
#pragma once

#include "actors/inference/route.hpp"
#include "kernels/base/units.hpp"
#include "kernels/learn/kv_cache.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace shoal::actors {

/// Why a server refuses a step.
enum class refusal : std::uint8_t {
  none,
  unknown_session, ///< the step goes on with a session that the server does not have
  no_cache,        ///< the quota has not enough left
  too_many,        ///< sessions, of all clients or of this one
  wrong_layers,    ///< layers that the server does not hold
  wrong_position,  ///< a step beyond the session's length, or beyond its reservation
  wrong_values,    ///< activations of another size, or values that are not finite
  drains,          ///< the server is about to leave
};
const char* to_string(refusal why) noexcept;

struct session_limits {
  std::uint64_t cache = 1 << 20; ///< tokens times layers
  std::size_t sessions = 4096;
  std::size_t sessions_of_one = 64; ///< limit for one client's host
  std::uint64_t cache_of_one = 1 << 19;
  duration idle = std::chrono::minutes(5); ///< an idle session is closed after this time
};

class session_table {
public:
  /// The client's host, and the number that it gave the session.
  using key = std::pair<peer_id, std::uint64_t>;
  struct session {
    layer_span layers;
    std::size_t samples = 0, most = 0, length = 0;
    /// One cache for each layer. A batch that is being computed shares them.
    std::vector<std::shared_ptr<learn::kv_cache>> caches{};
    bool busy = false; ///< a batch uses the caches
    duration used{};   ///< time of the last step
    std::uint64_t cost() const noexcept {
      return static_cast<std::uint64_t>(samples) * most * layers.count();
    }
  };

  explicit session_table(session_limits limits) : limits_(limits) {}

  /// Why a session of that size cannot open now; none: it can. Replaces no session.
  refusal may_open(const key& which, layer_span layers, std::size_t samples,
                   std::size_t most) const;
  /// Requires: may_open() is none.
  session& open(const key& which, session what, duration now);
  /// Null if there is none.
  session* find(const key& which);
  void close(const key& which);
  /// Closes sessions that were idle for too long. Returns how many there were.
  std::size_t expire(duration now);

  std::uint64_t left() const noexcept { return limits_.cache - used_; }
  std::size_t size() const noexcept { return sessions_.size(); }

private:
  using table = std::map<key, session>;
  table::iterator erase(table::iterator which);

  session_limits limits_;
  table sessions_;
  struct share {
    std::size_t sessions = 0;
    std::uint64_t cache = 0;
  };
  std::map<peer_id, share> shares_;
  std::uint64_t used_ = 0;
};

} // namespace shoal::actors
