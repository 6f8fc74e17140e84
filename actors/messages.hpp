// The facts about every message type: wire name, traffic class, size, and scope. The structs are in
// actors/<protocol>/messages.hpp.
#pragma once

#include "actors/message_list.hpp"

#include <cstdint>
#include <string_view>

namespace caf {
class actor_system_config;
class type_erased_tuple;
} // namespace caf

namespace shoal::actors {

/// Registers every message type with CAF. Requires: the actor_system does not exist yet.
void register_messages(caf::actor_system_config& config);

/// The traffic class and name of a message, and a function that counts its serialized bytes.
struct message_kind {
  traffic kind = traffic::control;
  const char* name = "?";
  /// Null for a message that is in no list.
  std::uint64_t (*bytes)(const caf::type_erased_tuple&) = nullptr;
};
message_kind kind_of(const caf::type_erased_tuple& content);
/// The traffic class of the message with this name; `control` for an unknown name.
traffic traffic_of(std::string_view name);
/// True if a message with this wire name may come from another host.
bool goes_between_hosts(std::string_view wire_name);

} // namespace shoal::actors
