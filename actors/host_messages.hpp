// Messages between a host and its own actors: timers, and results of requests to the host. None of
// these messages may cross hosts.
#pragma once

#include "actors/message_list.hpp"

#include <cstdint>

namespace shoal::actors {

/// The job of host::run() is over.
struct work_done {
  std::uint64_t token = 0;
  SHOAL_MESSAGE(work_done, x.token)
};

/// The attempt of host::dial() is over.
struct dialled {
  std::uint64_t token = 0;
  bool opened = false;
  SHOAL_MESSAGE(dialled, x.token, x.opened)
};

/// A timer of the receiving actor: the kind of timer, and the attempt for which it was set.
struct tick {
  std::uint32_t kind = 0;
  std::uint64_t token = 0;
  SHOAL_MESSAGE(tick, x.kind, x.token)
};

using host_messages = message_list<row<work_done, traffic::control, scope::local>,
                                   row<tick, traffic::control, scope::local>,
                                   row<dialled, traffic::control, scope::local>>;

} // namespace shoal::actors
