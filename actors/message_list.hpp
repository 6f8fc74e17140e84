// The vocabulary in which a protocol declares its messages: one struct and one row for each
// message. A protocol keeps both in actors/<protocol>/messages.hpp, and actors/all_messages.hpp
// includes its list.
//
// A field is an integer, a string, a handle, a payload, or a struct or vector of these. CAF 0.17's
// serializer turns NaN into 1 and hangs on +Inf, so no field may be a float or a double. A handle
// in a message is an address (host::address_of), never a raw handle. A field `from` or `peer` names
// the sender for logs only; the network knows the true sender.
#pragma once

#include <caf/meta/type_name.hpp>

#include <cstdint>

namespace shoal::actors {

/// The classes in which summary.json counts bytes.
enum class traffic : std::uint8_t { data, averaging, state, control };

/// Whether a message may come from another host. Local messages must not: with one, a foreign host
/// could act in the name of this host's actors.
enum class scope : std::uint8_t { local, remote };

/// One message type, its traffic class, and its scope. The wire name is "shoal::" and the name of
/// the struct.
template <class Message, traffic Class, scope Scope>
struct row {
  using type = Message;
  static constexpr traffic counted_as = Class;
  static constexpr actors::scope scope = Scope;
};

template <class... Rows>
struct message_list {};

/// The rows of all `Lists`, in order.
template <class... Lists>
struct joined_lists;
template <class... Rows>
struct joined_lists<message_list<Rows...>> {
  using type = message_list<Rows...>;
};
template <class... First, class... Second, class... Others>
struct joined_lists<message_list<First...>, message_list<Second...>, Others...> {
  using type = typename joined_lists<message_list<First..., Second...>, Others...>::type;
};
template <class... Lists>
using joined = typename joined_lists<Lists...>::type;

} // namespace shoal::actors

/// Belongs in a message's struct. States the name of the message, and its fields (of `x`) in the
/// order of serialization.
#define SHOAL_MESSAGE(type, ...)                                                                   \
  static constexpr const char* message_name = #type;                                               \
  template <class Inspector>                                                                       \
  friend typename Inspector::result_type inspect(Inspector& f, type& x) {                          \
    return f(caf::meta::type_name(#type), __VA_ARGS__);                                            \
  }
