// Messages by which a peer finds out how others reach it: actors/reachability.hpp.
#pragma once

#include "actors/ids.hpp"
#include "actors/message_list.hpp"

#include <caf/actor.hpp>

#include <cstdint>

namespace shoal::actors {

/// Asks which address the receiver sees on the sender's datagrams. If `third` is set, the receiver
/// also has that host dial `reply_to`.
struct address_query {
  caf::actor reply_to;
  caf::actor third;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(address_query, x.reply_to, x.third, x.token)
};

/// `seen` is the address that the asker's datagrams come from; 0 if none come.
struct address_answer {
  std::uint64_t token = 0;
  std::uint64_t seen = 0;
  SHOAL_MESSAGE(address_answer, x.token, x.seen)
};

/// Opens a connection to a reachable peer, so that this peer can reach the sender. No answer
/// follows.
struct greeting {
  peer_id peer = 0;
  SHOAL_MESSAGE(greeting, x.peer)
};

/// Asks a third host to dial `target` over a new connection.
struct dial_request {
  caf::actor reply_to;
  caf::actor target;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(dial_request, x.reply_to, x.target, x.token)
};

/// Goes from the third host to the queried peer, which passes it on to the asker.
struct dial_answer {
  std::uint64_t token = 0;
  std::uint8_t opened = 0;
  SHOAL_MESSAGE(dial_answer, x.token, x.opened)
};

using reachability_messages = message_list<row<address_query, traffic::control, scope::remote>,
                                           row<address_answer, traffic::control, scope::remote>,
                                           row<dial_request, traffic::control, scope::remote>,
                                           row<dial_answer, traffic::control, scope::remote>,
                                           row<greeting, traffic::control, scope::remote>>;

} // namespace shoal::actors
