// Encodes messages between processes in CAF's binary form. Large payloads travel beside the binary
// form: neither the sender nor this decoder copies them. Actor addresses are encoded as node id and
// number (netem/fabric.hpp).
//
// The decoder checks bytes before it creates objects. It accepts only messages of one element and
// of the given type names. It compares lengths with the remaining bytes, and never allocates memory
// for missing bytes.
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

/// Requires: `content` can be serialized, which holds for every registered message.
encoded_message encode(caf::actor_system& system, const caf::type_erased_tuple& content);

/// Decodes a message. `beside` holds the bytes of the payloads, one after the other. Addresses
/// become addresses of `net`, which keeps every host that a message names. The number of hosts that
/// are new to `net` is added to `unheard`, even if the message is refused.
/// Errors: a few words on what is wrong.
result<caf::message> decode(caf::actor_system& system, fabric& net,
                            std::span<const std::byte> binary, const payload& beside,
                            const std::function<bool(std::string_view type)>& acceptable,
                            std::size_t* unheard = nullptr);

} // namespace shoal::netem::wire
