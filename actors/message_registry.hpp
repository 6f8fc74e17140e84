// Message types that are not part of this library. A program calls add_messages<its_list>() when it
// starts. Its types are then registered, counted and accepted like those of
// actors/all_messages.hpp.
#pragma once

#include "actors/byte_counter.hpp"
#include "actors/message_fields.hpp"
#include "actors/message_list.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/make_type_erased_value.hpp>
#include <caf/message.hpp>
#include <caf/type_erased_tuple.hpp>

#include <cstdint>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

namespace shoal::actors {

/// A row of a message_list at run time.
struct message_entry {
  const char* name = "";
  traffic counted_as = traffic::control;
  actors::scope scope = actors::scope::local;
  const std::type_info* type = nullptr;
  void (*add_to)(caf::actor_system_config&, const std::string& wire_name) = nullptr;
  bool (*matches)(const caf::type_erased_tuple&) = nullptr;
  std::uint64_t (*bytes)(const caf::type_erased_tuple&) = nullptr;
  /// A copy after the visitor has seen, and may have changed, its fields.
  caf::message (*with_fields)(const caf::type_erased_tuple&, field_visitor&) = nullptr;
};

/// Registers a message type under its wire name. CAF's add_message_type() also registers streams
/// and vectors of the type. No actor sends those, and their code takes longer to compile than the
/// type's.
template <class Message>
void add_to(caf::actor_system_config& config, const std::string& wire_name) {
  const std::type_index type{typeid(Message)};
  config.type_names_by_rtti.emplace(type, wire_name);
  config.value_factories_by_name.emplace(wire_name, &caf::make_type_erased_value<Message>);
  config.value_factories_by_rtti.emplace(type, &caf::make_type_erased_value<Message>);
}

template <class Row>
message_entry entry_of() {
  using message = typename Row::type;
  message_entry out;
  out.name = message::message_name;
  out.counted_as = Row::counted_as;
  out.scope = Row::scope;
  out.type = &typeid(message);
  out.add_to = add_to<message>;
  out.matches = [](const caf::type_erased_tuple& content) {
    return content.match_elements<message>();
  };
  out.bytes = [](const caf::type_erased_tuple& content) {
    byte_counter counter;
    // The counter only reads. CAF's inspect() takes a reference that is not const.
    counter(*static_cast<message*>(const_cast<void*>(content.get(0))));
    return counter.bytes();
  };
  out.with_fields = [](const caf::type_erased_tuple& content, field_visitor& by) {
    message copy = *static_cast<const message*>(content.get(0));
    field_inspector inspector(by);
    inspect(inspector, copy);
    return caf::make_message(std::move(copy));
  };
  return out;
}

template <class... Rows>
std::vector<message_entry> entries_of(message_list<Rows...>) {
  return {entry_of<Rows>()...};
}

/// Adds message types to the registry. A type that the registry has already is left as it is.
/// Requires: no other type has one of these names, no actor_system exists yet, and no other thread
/// reads the registry.
void add_messages(const std::vector<message_entry>& entries);

template <class List>
void add_messages() {
  add_messages(entries_of(List{}));
}

} // namespace shoal::actors
