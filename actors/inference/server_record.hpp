// The record of an inference server in the DHT, under the key of its model. It says which layers
// the server holds, how fast it is, and how much cache it has left.
#pragma once

#include "actors/inference/route.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::actors {

struct server_record {
  layer_span layers;
  std::uint64_t layer_ns = 0;   ///< time of one token through one layer
  std::uint64_t cache_left = 0; ///< tokens times layers
  std::uint64_t model = 0;      ///< digest of the whole model: only equal models make one chain
  bool drains = false;          ///< the server takes no new sessions
  bool operator==(const server_record&) const = default;

  payload pack() const;
  /// Empty for bytes that are no such record.
  static std::optional<server_record> unpack(const payload& from);
};

/// The key of the servers of a model.
inline std::string servers_key(std::string_view model) {
  return "servers." + std::string{model};
}

} // namespace shoal::actors
