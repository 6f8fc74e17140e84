// The machine under a protocol actor, as far as a protocol may know it: clock, random streams,
// compute, address and fault probes. scenarios/runner has one implementation for each world. An
// actor cannot tell which one it got.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::actors {

class observation; // actors/observe.hpp
struct evidence;   // actors/trust/evidence.hpp
struct verdict;    // actors/trust/verdict.hpp
/// All kinds of proofs of a member's guilt (actors/trust/proof.hpp).
using proof = std::variant<evidence, verdict>;

/// The effect of a proof on a host.
enum class ban_result : std::uint8_t {
  wrong,  ///< the proof proves nothing
  known,  ///< the host has banned the culprit before, or is the culprit
  later,  ///< the host does not know the verdict's group yet
  banned, ///< since now
};

/// One incarnation of one machine. A host outlives every actor on it.
class host {
public:
  virtual ~host() = default;

  virtual std::string_view name() const = 0;
  virtual peer_id id() const = 0;

  // -- the member behind this host, and behind others: actors/trust/identity.hpp

  /// This member's public key. All incarnations have the same one.
  virtual const key256& key() const = 0;
  /// Signs a statement in this member's name.
  virtual signature sign(const digest& statement) const = 0;
  /// True if the owner of `key` signed the statement.
  virtual bool is_signed_by(const key256& key, const digest& statement,
                            const signature& by) const = 0;
  /// A text that proves that the swarm admits this member's key: its certificate. Empty if the
  /// world has no certificates.
  virtual std::string certificate() const { return {}; }
  /// True if the swarm admits `key`, now. An empty certificate asks whether this host knows the key
  /// already; a certificate of another key counts as empty.
  virtual bool admits(const key256& key, std::string_view certificate) = 0;
  /// The certificate of another member whose key the swarm admits, if this host has seen it.
  virtual std::string certificate_of(const key256& key) const {
    (void)key;
    return {};
  }
  /// The peer on whose host the actor at `address` is; 0 if there is no address. The sender of a
  /// message is the only identity in it that the network has checked.
  virtual peer_id peer_of(const caf::strong_actor_ptr& address) const = 0;
  /// The member of that host; zero if there is no address.
  virtual member_id member_of(const caf::strong_actor_ptr& address) const = 0;

  /// Bans the culprit for good if the proof holds. Messages of a banned member do not arrive any
  /// more.
  virtual ban_result ban(const proof& what) = 0;
  /// Tells the host the keys of a group's members, in the order of the roster. A verdict about the
  /// group counts from now on (actors/trust/verdict.hpp).
  virtual void remember_group(const group_id& group, std::vector<key256> members) = 0;
  /// True if messages of this sender must not arrive.
  virtual bool refuses(const caf::strong_actor_ptr& sender) const noexcept = 0;
  virtual bool is_banned(const member_id& who) const noexcept = 0;

  /// Coordinated universal time in nanoseconds by this host's clock, which may be wrong.
  /// Expirations use it, because they are compared across hosts. Durations use self->clock().
  virtual std::int64_t utc_ns() const = 0;

  /// A new generator for the named purpose. Equal names give equal streams.
  virtual rng random_stream(std::string_view name) const = 0;

  /// The handle under which other hosts reach `local`. Only this handle may be published: a raw
  /// handle that crosses hosts bypasses the network, and the invariant `no_bypass` counts it.
  virtual caf::actor address_of(const caf::actor& local) = 0;

  /// The rates of this host's line that its owner states, in bits per second.
  virtual std::uint64_t rate_up() const = 0;
  virtual std::uint64_t rate_down() const = 0;

  // The following functions say how other hosts reach this one; actors/reachability.hpp combines
  // the answers of several hosts.

  /// The public address that this host sees on datagrams from `other`. The number only tells
  /// whether two addresses are equal; 0 means that no datagrams arrive.
  virtual std::uint64_t seen_address(const caf::actor& other) = 0;
  /// Opens a new, direct connection to the host of `other`; relays and existing connections are not
  /// used. Sends dialled{token, whether the connection opened} to `notify`, an actor of this host,
  /// after `timeout` at the latest.
  virtual void dial(const caf::actor& other, duration timeout, const caf::actor& notify,
                    std::uint64_t token) = 0;
  /// True if a relay has promised to forward messages to this host, and connection requests.
  virtual bool has_relay() const = 0;

  /// Runs `work` on a compute thread. When both `work` and `time` are over, sends work_done{token}
  /// to `notify`, an actor of this host. Requires: `work` touches no actors. If `work` throws, the
  /// whole run ends with an error that names `job`.
  virtual void run(std::string_view job, std::function<void()> work, duration time,
                   const caf::actor& notify, std::uint64_t token) = 0;

  /// Reports that a protocol has reached a named point (actors/probes.hpp). A fault may strike
  /// here: the calling actor is then dead after its handler returns.
  virtual void probe(std::string_view point) = 0;

  /// True if the caller should take this branch of actors/failpoints.hpp now. Only a scenario with
  /// `failpoints` makes it true.
  virtual bool failpoint(std::string_view branch) {
    (void)branch;
    return false;
  }

  virtual void observe(const observation& what) = 0;

  /// The runtime calls this for each message before the message enters a mailbox of this host. The
  /// host counts messages of other hosts that bypassed the network.
  virtual void arriving() noexcept = 0;
};

} // namespace shoal::actors
