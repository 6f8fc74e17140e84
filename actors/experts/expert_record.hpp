// The records of experts in the DHT, and what a client knows of them. Plain data and a plain state
// machine.
//
// Under the key of a prefix each host has one record: the next coordinates under which it holds
// experts. For whole places the record also says how many steps each expert has made. So a host
// with several experts renews few records, and the record's address is the server's.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/experts/expert_hosts.hpp"
#include "actors/experts/expert_id.hpp"
#include "actors/host.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// The rows of one request, at most. A trainer splits what it has.
constexpr std::size_t most_expert_rows = 1024;

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

/// The records under a prefix, from the answer of a look-up.
class expert_dictionary {
public:
  expert_dictionary() = default;
  expert_dictionary(const found& answer, const host& here);

  /// The next coordinates under which some host counts that has experts there.
  std::vector<std::uint32_t> alive(const expert_hosts& hosts, std::int64_t utc_ns,
                                   duration now) const;
  /// The host of an expert, by its last coordinate: the one with the most steps, then the smallest
  /// peer id. Empty if no host of it counts.
  std::optional<expert_holder> holder(std::uint32_t at, const expert_hosts& hosts,
                                      std::int64_t utc_ns, duration now) const;
  bool empty() const noexcept { return entries_.empty(); }
  /// The host holds nothing under the prefix, or not this coordinate.
  void drop(peer_id host);
  void drop(peer_id host, std::uint32_t at);

private:
  struct entry {
    std::uint32_t at = 0;
    expert_holder holder;
  };
  std::vector<entry> entries_;
};

struct expert_cache_options {
  duration fresh = std::chrono::seconds(30);      ///< a dictionary is read this often
  duration fresh_empty = std::chrono::seconds(5); ///< the same for one without live coordinates
  expert_hosts::times hosts;
};

/// The dictionaries of prefixes that a client has read, and its word on their hosts.
class expert_cache {
public:
  explicit expert_cache(expert_cache_options options) : options_(options), hosts_(options.hosts) {}

  using prefix = expert_id; ///< with fewer coordinates

  expert_hosts& hosts() noexcept { return hosts_; }
  /// True if the dictionary has to be read before it can be used.
  bool needs(const prefix& which, duration now) const;
  /// Takes the answer of a look-up.
  void read(const prefix& which, const found& answer, const host& here, duration now);
  std::vector<std::uint32_t> alive(const prefix& which, std::int64_t utc_ns, duration now) const;
  std::optional<expert_holder> holder(const expert_id& which, std::int64_t utc_ns,
                                      duration now) const;
  /// The host holds the expert no more.
  void moved(const expert_id& which, peer_id from);
  /// Drops dictionaries that nobody needed for long, and hosts of which nothing is to be said.
  void drop_old(std::int64_t utc_ns, duration now);
  std::size_t size() const noexcept { return dictionaries_.size(); }

private:
  struct one_read {
    expert_dictionary what;
    duration when{};
  };
  expert_cache_options options_;
  std::map<prefix, one_read> dictionaries_;
  expert_hosts hosts_;
};

} // namespace shoal::actors
