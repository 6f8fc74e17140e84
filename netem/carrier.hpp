// The interface between the fabric and a real network. A carrier takes messages from hosts of this
// process to hosts that may be in another process; netem/wire/ implements it. The fabric
// (netem/fabric.hpp) keeps the addresses, decides who may send, and shapes traffic if asked to. The
// carrier moves the bytes, and reports the end of observed actors and hosts.
#pragma once

#include "netem/ids.hpp"

#include <caf/mailbox_element.hpp>
#include <caf/node_id.hpp>

#include <cstdint>

namespace shoal::netem {

/// Thread safety: any thread may call. The caller does not hold the fabric's lock.
class carrier {
public:
  virtual ~carrier() = default;

  /// Takes `element` from host `from` to actor `to`. The element's sender is an address or empty.
  /// `bytes` is the size on the wire. `bulk`: the message must not delay small messages.
  virtual void carry(endpoint from, endpoint to, caf::mailbox_element_ptr element,
                     std::uint64_t bytes, bool bulk) = 0;
  /// An actor of `from` observes `of`. The carrier calls fabric::gone() once when `of` is gone.
  virtual void watch(host_index from, endpoint of) = 0;
  /// An actor of this process that had an address has ended.
  virtual void ended(endpoint of) = 0;
  /// A host of this process was killed. No message enters or leaves it any more.
  virtual void killed(host_index host, kill_scope scope) = 0;
};

} // namespace shoal::netem
