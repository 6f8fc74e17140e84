// The records of experts in the DHT, and what a client knows of them. Plain data and a plain state
// machine.
//
// Under the key of a prefix each host has one record: the next coordinates under which it holds
// experts. For whole places the record also says how many steps each expert has made. So a host
// with several experts renews few records, and the record's address is the server's.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/experts/expert_search.hpp"
#include "actors/host.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// The rows of one request, at most. A trainer splits what it has.
constexpr std::size_t most_expert_rows = 1024;

/// An expert of a model: its layer, and its place on the layer's grid.
struct expert_id {
  std::uint32_t layer = 0;
  expert_place place;
  auto operator<=>(const expert_id&) const = default;
};
/// The prefix under which an expert or a longer prefix stands: without its last coordinate.
/// Requires: at least one coordinate.
expert_id parent_of(expert_id which);
/// As '2.14.3': the layer, then the coordinates.
std::string to_text(const expert_id& which);

/// The key of the dictionary of a prefix: 'experts.MODEL.2.14'.
std::string prefix_key(std::string_view model, std::uint32_t layer, const expert_place& prefix);
/// The key of the servers of a model's experts. A server's record has no value.
std::string expert_hosts_key(std::string_view model);
/// The key under which hosts offer to revive an expert. An offer says how fresh their copy is.
std::string revival_key(std::string_view model, const expert_id& which);

/// One coordinate of a host's record. `steps` has a meaning for whole places only.
struct live_coordinate {
  std::uint32_t at = 0;
  std::uint64_t steps = 0;
  bool operator==(const live_coordinate&) const = default;
};
payload pack_coordinates(const std::vector<live_coordinate>& what);
/// Empty for bytes that are no such record, and for more than 65536 coordinates.
std::optional<std::vector<live_coordinate>> unpack_coordinates(const payload& from);

/// A host that holds an expert.
struct expert_holder {
  peer_id peer = 0;
  caf::actor address;
  std::uint64_t steps = 0;
  std::int64_t expires_utc_ns = 0;
};

struct expert_cache_options {
  duration fresh = std::chrono::seconds(30);      ///< a dictionary is read this often
  duration fresh_empty = std::chrono::seconds(5); ///< the same for one without live coordinates
  duration ban = std::chrono::seconds(15);        ///< a host that failed gets nothing for so long
  duration record_lifetime = std::chrono::minutes(1);
};

/// The dictionaries of prefixes that a client has read. A coordinate is alive while a record that
/// names it has not expired, unless all its hosts have failed.
class expert_cache {
public:
  explicit expert_cache(expert_cache_options options) : options_(options) {}

  using prefix = expert_id; ///< with fewer coordinates

  /// True if the dictionary has to be read before it can be used.
  bool needs(const prefix& which, duration now) const;
  /// Takes the answer of a look-up. `whole`: the prefix lacks one coordinate to a whole place.
  void read(const prefix& which, const found& answer, const host& here, duration now);
  std::vector<std::uint32_t> alive(const prefix& which, std::int64_t utc_ns, duration now) const;
  /// The host of an expert: the one with the most steps, then the smallest peer id. Empty if none
  /// is alive.
  std::optional<expert_holder> holder(const expert_id& which, std::int64_t utc_ns,
                                      duration now) const;
  /// The host gets nothing for a while, as it did not answer: `bans` times the usual time.
  void failed(peer_id host, duration now, unsigned bans = 1);
  /// The host has not answered in time. It gets nothing until it is heard, has failed or is gone.
  void silent(peer_id host) { silent_.insert(host); }
  void heard(peer_id host) { silent_.erase(host); }
  /// The host holds the expert no more.
  void moved(const expert_id& which, peer_id from);
  /// The host died at that time (UTC), or was cut off. Records that it may have written before do
  /// not count. One that was cut off comes back with a later record.
  void gone(peer_id host, std::int64_t utc_ns) {
    gone_[host] = utc_ns + options_.record_lifetime.count();
    silent_.erase(host);
  }
  /// Drops dictionaries that nobody needed for long.
  void drop_old(duration now);
  std::size_t size() const noexcept { return dictionaries_.size(); }

private:
  struct entry {
    std::uint32_t at = 0;
    expert_holder holder;
  };
  struct dictionary {
    std::vector<entry> entries;
    duration read{};
  };
  bool counts(const entry& one, std::int64_t utc_ns, duration now) const;

  expert_cache_options options_;
  std::map<prefix, dictionary> dictionaries_;
  std::map<peer_id, duration> banned_until_;
  std::set<peer_id> silent_;
  std::map<peer_id, std::int64_t> gone_; // records count that end later than this
};

} // namespace shoal::actors
