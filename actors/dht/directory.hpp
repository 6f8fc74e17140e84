// The directory: one actor behind the interface that a DHT offers (store with expiration, lookup,
// dictionary sub-keys). It keeps and returns records; it never counts, decides or pushes, so that
// what is built on it can move to Kademlia without change.
//
// Handles store, withdraw and lookup (answered by found). Of two records under one (key, sub-key)
// the one that expires later wins, of equals the later arrival; what has expired by this host's UTC
// is dropped. Records beyond the limits, empty keys and lookups that nobody can answer are
// misbehaviour.
#pragma once

#include "actors/protocol_actor.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace shoal::actors {

struct directory_config {
  std::size_t max_keys = std::size_t{1} << 16;
  std::size_t max_records_per_key = std::size_t{1} << 20;
  std::size_t max_records = std::size_t{1} << 22;
  std::size_t max_key_bytes = 256; ///< of a key, and of a sub-key
  std::size_t max_value_bytes = 4096;
  duration max_lifetime = std::chrono::hours{24};
};

class directory : public protocol_actor {
public:
  directory(caf::actor_config& config, host& on, directory_config settings = {});
  void on_exit() override;

protected:
  caf::behavior make_behavior() override;

private:
  using expiry = std::tuple<std::int64_t, std::string, std::string>; // when, key, sub-key

  void on_store(const store& what);
  void on_lookup(const lookup& what);
  void remove(const std::string& key, const std::string& subkey);
  /// Removes what has expired. Complexity: O(log n) for each record removed.
  void drop_expired();

  directory_config settings_;
  std::map<std::string, std::map<std::string, record>> records_;
  std::set<expiry> by_expiry_;
};

} // namespace shoal::actors
