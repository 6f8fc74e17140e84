// A message between processes: CAF's binary form, with large payloads beside it, which are not
// copied when they are sent, nor here when they have come. Addresses in it are named by node id and
// number (netem/fabric.hpp).
//
// What comes is checked before anything is made of it: only types of the given names, in messages
// of one element; lengths against what is left; nothing is allocated for bytes that are not there.
#pragma once

#include "kernels/base/payload.hpp"
#include "kernels/base/result.hpp"

#include <caf/actor_system.hpp>
#include <caf/message.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::netem {
class fabric;
}

namespace shoal::netem::wire {

struct encoded_message {
  std::vector<char> binary;
  std::vector<payload> beside;

  std::size_t beside_bytes() const noexcept {
    std::size_t out = 0;
    for (const auto& part : beside) out += part.size();
    return out;
  }
};

/// Requires: `content` can be serialized, which every registered message can.
encoded_message encode(caf::actor_system& system, const caf::type_erased_tuple& content);

/// `beside`: the payloads' bytes, one after the other. Addresses become those that `net` knows,
/// which keeps every host that it has heard of: those of which it hears here first are added to
/// `unheard`, in a message that is refused as well. Errors: what is wrong with it, a few words.
result<caf::message> decode(caf::actor_system& system, fabric& net,
                            std::span<const std::byte> binary, const payload& beside,
                            const std::function<bool(std::string_view type)>& acceptable,
                            std::size_t* unheard = nullptr);

} // namespace shoal::netem::wire
