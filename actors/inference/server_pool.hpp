// The servers of a model as a client knows them: their records in the DHT, and what the client has
// learnt about them. A plain state machine.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/host.hpp"
#include "actors/inference/route.hpp"
#include "actors/inference/server_record.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace shoal::actors {

struct server_pool_options {
  std::uint64_t model = 0;                 ///< digest of the model
  std::uint32_t layers = 0;                ///< all layers of the model
  duration ban = std::chrono::seconds(15); ///< the first one; each further is twice as long
  double unknown_round_trip = 0.15;        ///< seconds, of a server that was not measured yet
  double overhead = 0;                     ///< seconds for each hop, beside the network
};

class server_pool {
public:
  struct server {
    caf::actor address;
    server_record record;
    std::int64_t expires_utc_ns = 0;  ///< UTC, when the record ends
    std::optional<double> round_trip; ///< seconds, measured; a moving mean
    duration banned_until{};
    unsigned strikes = 0;
    bool watched = false; ///< the client monitors it
  };

  explicit server_pool(server_pool_options options) : options_(options) {}

  /// Takes the answer of a look-up of servers_key().
  void read(const found& m, const host& here);
  /// The servers that may get work now.
  std::vector<server_view> views(duration now) const;
  /// Null if there is none.
  server* find(peer_id peer);
  /// The server gets no work for a while.
  void ban(peer_id peer, duration now);
  /// The server computes wrongly, and gets no work any more.
  void distrust(peer_id peer) { distrusted_.insert(peer); }
  /// The server has answered in `round_trip` seconds, without those that it computed. Empty: the
  /// time says nothing of the network.
  void answered(peer_id peer, std::optional<double> round_trip = std::nullopt);
  /// The server at that address has died. Empty if none is there.
  std::optional<peer_id> gone(const caf::actor_addr& address);
  void clear() { servers_.clear(); }

private:
  server_pool_options options_;
  std::map<peer_id, server> servers_;
  /// Servers that died or were cut off, and when their last known record ends (UTC). One that was
  /// cut off comes back with a newer record.
  std::map<peer_id, std::int64_t> gone_;
  std::set<peer_id> distrusted_;
};

} // namespace shoal::actors
