// Where the network is real: what takes a message from a host of this process to one that may be
// elsewhere. The fabric (netem/fabric.hpp) keeps the addresses, says who sends and who may, and
// shapes if it is asked to; the carrier moves the bytes (netem/wire/), and says when an observed
// actor or its host is gone.
#pragma once

#include "netem/ids.hpp"

#include <caf/mailbox_element.hpp>
#include <caf/node_id.hpp>

#include <cstdint>

namespace shoal::netem {

/// Thread safety: any thread may call; the fabric's lock is not held.
class carrier {
public:
  virtual ~carrier() = default;

  /// Takes `element` from `from` to the actor `to`. Its sender is an address or empty. `bytes` is
  /// its size on the wire; `bulk` says that it may not delay what is small.
  virtual void carry(endpoint from, endpoint to, caf::mailbox_element_ptr element,
                     std::uint64_t bytes, bool bulk) = 0;
  /// An actor of `from` wants to know when `of` is gone: the carrier calls fabric::gone() with it,
  /// once.
  virtual void watch(host_index from, endpoint of) = 0;
  /// An actor of this process that had an address has ended.
  virtual void ended(endpoint of) = 0;
  /// A host of this process was killed: nothing enters or leaves it any more.
  virtual void killed(host_index host, kill_scope scope) = 0;
};

} // namespace shoal::netem
