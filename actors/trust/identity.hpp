// A member of the swarm is its certificate's key. The name, the incarnation and the address of a
// host may change; the key does not.
//
// An address certifies itself: its node id has the first 160 bits of BLAKE2b-256 of the key. The
// network lets a host use only the node id of the key that it proved in the handshake. So whoever
// has an address knows the member behind it, without asking anybody.
//
// Statements. A member signs the digest of a statement: the kind of the statement, the swarm, and
// the fields. The kind keeps a signature for one purpose from passing for another.
#pragma once

#include "actors/ids.hpp"

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::actors {

/// The member with this key: the first 128 bits of BLAKE2b-256 of the key.
member_id member_of(const key256& key);
/// The member whose host has this address; zero if there is no address, or if no host made it.
member_id member_of(const caf::node_id& node);

/// 32 bytes as a key, and back.
key256 key_from(std::string_view bytes);
std::string bytes_of(const key256& key);

/// The key of a machine without keys, as in a simulation. Its signatures are stand-ins.
key256 stand_in_key(std::string_view name);
/// A keyed hash in place of a signature: a signature takes 40 us, and a simulation makes millions.
/// `secret` belongs to the world, so no actor can make one in another member's name.
signature stand_in_signature(std::uint64_t secret, const key256& by, const digest& statement);

/// True if the owner of `key` signed `statement` with Ed25519 (RFC 8032, by libsodium).
bool is_signed_by(const key256& key, const digest& statement, const signature& by);

/// The begin of a statement of this kind. Add the fields, then finish().
hasher statement(std::string_view kind);

} // namespace shoal::actors
