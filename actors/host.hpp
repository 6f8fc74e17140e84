// The machine under a protocol actor, as far as a protocol may know it: time that can be wrong,
// named randomness, compute that takes time, and points where faults can strike. Implemented once
// for each world in scenarios/runner; actors never know which one they got.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace shoal::actors {

class observation; // actors/observe.hpp

/// One incarnation of one host. Lives longer than every actor on it.
class host {
public:
  virtual ~host() = default;

  virtual std::string_view name() const = 0;
  virtual peer_id id() const = 0;

  /// Coordinated universal time in nanoseconds, as this host believes it to be (it can be skewed).
  /// For expirations, which compare across hosts. For durations use self->clock().
  virtual std::int64_t utc_ns() const = 0;

  /// A new generator for the named purpose; equal names give equal streams.
  virtual rng random_stream(std::string_view name) const = 0;

  /// The handle under which other hosts reach `local`. Publish only this one: a raw handle that
  /// crosses hosts bypasses the network (counted, see DESIGN section 1).
  virtual caf::actor address_of(const caf::actor& local) = 0;

  /// What this host's owner says of its line, in bits per second.
  virtual std::uint64_t rate_up() const = 0;
  virtual std::uint64_t rate_down() const = 0;

  // What a host can find out about how it is reached; actors/reachability.hpp asks it and others.

  /// The public address from which `other`'s datagrams reach this host, as a number that says only
  /// whether two are equal; 0: none do.
  virtual std::uint64_t seen_address(const caf::actor& other) = 0;
  /// Tries to open a new connection to the host of `other`, by no relay and on none there is. Sends
  /// dialled{token, whether it opened} to `notify`, an actor of this host, after `patience` at the
  /// latest.
  virtual void dial(const caf::actor& other, duration patience, const caf::actor& notify,
                    std::uint64_t token) = 0;
  /// A relay has promised to pass on what others send to this host, and to signal.
  virtual bool has_relay() const = 0;

  /// Runs `work` on a compute thread; when it and `time` are over, sends work_done{token} to
  /// `notify`, an actor of this host. `work` must not touch actors. If it throws, the whole run
  /// ends with an error that names `job`.
  virtual void run(std::string_view job, std::function<void()> work, duration time,
                   const caf::actor& notify, std::uint64_t token) = 0;

  /// A named point of a protocol has been reached; a fault may strike here (then the calling actor
  /// is dead after the handler returns). Names: actors/probes.hpp.
  virtual void probe(std::string_view point) = 0;

  /// Whether to take a branch of actors/failpoints.hpp now. Never, but in a scenario that says so.
  virtual bool failpoint(std::string_view branch) {
    (void)branch;
    return false;
  }

  virtual void observe(const observation& what) = 0;

  /// Called for each message that is put into a mailbox of this host, before it is. Counts those
  /// that came from another host without the network.
  virtual void arriving() noexcept = 0;
};

} // namespace shoal::actors
