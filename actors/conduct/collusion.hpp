// The knowledge of colluding attackers: the newest contributions, as these are without the
// attack. They also agree on the values that all of them send in an epoch.
//
// A member contributes when its round begins, a little before or after the others. The attackers
// decide when the first of them contributes. Contributions of others that are not there yet count
// as they were in the epoch before.
//
// Thread safety: all functions.
#pragma once

#include "actors/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shoal::actors {

/// The coordinate-wise mean and standard deviation of known contributions.
struct known_contributions {
  std::size_t count = 0;
  std::vector<double> mean, deviation;
};

class collusion {
public:
  /// A contribution that is honest. Contributions of one size belong together: a second round of an
  /// epoch has others.
  void note(peer_id by, bool attacker, std::uint64_t epoch, std::span<const float> values);
  /// The contributions of this size in `epoch`, or else in the epoch before. Nothing if there are
  /// none. `everybody`: those of members that are no attackers; otherwise those of attackers.
  std::optional<known_contributions> known(std::uint64_t epoch, std::size_t size,
                                           bool everybody) const;
  /// The attackers that have contributed lately.
  std::size_t attackers(std::uint64_t epoch) const;
  /// The values that all attackers send: those of the first one to ask.
  std::vector<float> agreed(std::uint64_t epoch, std::size_t size,
                            const std::function<std::vector<float>()>& values);

private:
  struct contribution {
    bool attacker = false;
    std::uint64_t epoch = 0;
    std::vector<float> values;
  };
  struct agreement {
    std::uint64_t epoch = 0;
    std::vector<float> values;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::size_t, peer_id>, contribution> newest_; // by size and peer
  std::map<std::size_t, agreement> agreed_;                        // by size
};

} // namespace shoal::actors
