// Detects that a host of a cluster is alone: every host that was linked with it has said goodbye. A
// plain state machine; the caller's clock gives the times.
#pragma once

#include "kernels/base/units.hpp"

#include <optional>
#include <set>
#include <string>

namespace shoal::scenarios {

class desertion {
public:
  /// A link with `host` is up.
  void linked(const std::string& host);
  /// `host` said goodbye. Returns true if this was the last expected host.
  bool left(const std::string& host, duration now);
  /// The link with `host` is lost without a goodbye. A host that never said goodbye may be
  /// restarting, so it stays expected. A host that said goodbye earlier was dialled while its
  /// process ended, so it has left. Returns the same value as left().
  bool lost(const std::string& host, duration now);

  /// Returns the time since which no host is left. Empty while a host is expected, and before the
  /// first link.
  std::optional<duration> since() const noexcept { return since_; }

private:
  bool gone(const std::string& host, duration now);

  std::set<std::string> here_; // hosts that are linked or expected to return
  std::set<std::string> said_goodbye_;
  std::optional<duration> since_;
};

} // namespace shoal::scenarios
