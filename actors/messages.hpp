// What is known of every message type: its wire name, its traffic class, its size, and whether
// another host may send it. The structs stand in actors/<protocol>/messages.hpp; this header
// declares only the questions about them.
#pragma once

#include "actors/message_list.hpp"

#include <cstdint>
#include <string_view>

namespace caf {
class actor_system_config;
class type_erased_tuple;
} // namespace caf

namespace shoal::actors {

/// Registers every message type with CAF. Call this before the actor_system is made.
void register_messages(caf::actor_system_config& config);

/// The traffic class and the name of a message, and a function that counts its bytes when it is
/// serialized.
struct message_kind {
  traffic kind = traffic::control;
  const char* name = "?";
  std::uint64_t (*bytes)(const caf::type_erased_tuple&) =
      nullptr; ///< null for a message that is in no list
};
message_kind kind_of(const caf::type_erased_tuple& content);
/// The traffic class of a message by its name in message_kind; control for an unknown name.
traffic traffic_of(std::string_view name);
/// Whether this is the wire name of a message that one host may send to another.
bool goes_between_hosts(std::string_view wire_name);

} // namespace shoal::actors
