// When a data shard of a cluster has been left alone: every host that it was linked with has said
// goodbye. A plain state machine; the times are the caller's clock.
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
  /// `host` said goodbye. Returns whether nobody is left now, for the first time since somebody was
  /// there.
  bool left(const std::string& host, duration now);
  /// The link with `host` is lost without a goodbye. A host that never said goodbye may only have
  /// been restarted, and stays expected. One that said goodbye before was dialled while its process
  /// ended, and has left again. Returns as left() does.
  bool lost(const std::string& host, duration now);

  /// Since when nobody is left; nothing while somebody is, and before anybody came.
  std::optional<duration> since() const noexcept { return since_; }

private:
  bool gone(const std::string& host, duration now);

  std::set<std::string> here_; // linked once, and expected to be there or to come back
  std::set<std::string> said_goodbye_;
  std::optional<duration> since_;
};

} // namespace shoal::scenarios
