// The vocabulary in which a protocol declares its messages: one struct and one row for each.
// A protocol keeps both in actors/<protocol>/messages.hpp, and actors/all_messages.hpp names its
// list.
//
// Fields are integers, strings, handles, payloads, and structs or vectors of these. CAF 0.17's
// serializer turns NaN into 1 and hangs on +Inf, so no field may be a float or a double. Handles
// are addresses (host::address_of), never raw handles. A field `from` or `peer` names the sender
// for logs; the network says who really sent a message.
#pragma once

#include <caf/meta/type_name.hpp>

#include <cstdint>

namespace shoal::actors {

/// The classes in which summary.json counts bytes.
enum class traffic : std::uint8_t { data, averaging, state, control };

/// Whether a message may come from another host. A local one would let a stranger act in the name
/// of this host's actors.
enum class scope : std::uint8_t { local, remote };

/// One message type, the class that its bytes are counted in, and its scope. Its wire name is
/// "shoal::" and the struct's name.
template <class Message, traffic Class, scope Scope>
struct row {
  using type = Message;
  static constexpr traffic counted_as = Class;
  static constexpr actors::scope scope = Scope;
};

template <class... Rows>
struct message_list {};

/// The rows of all `Lists`, in their order.
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

/// Stands in a message's struct: its name, and its fields (of `x`) in the order in which they are
/// written.
#define SHOAL_MESSAGE(type, ...)                                                                   \
  static constexpr const char* message_name = #type;                                               \
  template <class Inspector>                                                                       \
  friend typename Inspector::result_type inspect(Inspector& f, type& x) {                          \
    return f(caf::meta::type_name(#type), __VA_ARGS__);                                            \
  }
