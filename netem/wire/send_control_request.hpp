// A control request: a question to a host from a program that is not a host, and the host's answer.
// `shoal status` and `shoal drain` use it. A request has a pipe of its own kind. The pipe makes no
// link, and its frames reach no actor. A host does not answer a client that is not admitted.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/network.hpp"
#include "netem/wire/pipe.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace shoal::netem::wire {

/// The kind of a request's pipe. Its name on the wire is part of the protocol.
inline constexpr const char* control_request_kind = "visit";
inline constexpr std::size_t longest_question = 4096;                 ///< bytes
inline constexpr std::size_t longest_answer = std::size_t{512} << 10; ///< bytes

/// Encodes an answer as a frame: first whether the request was carried out, then the text.
frame to_frame(const control_answer& what);
/// Decodes an answer. Returns nothing if there are no bytes. A first byte other than yes means no.
std::optional<control_answer> read_control_answer(std::span<const std::byte> bytes);

/// Asks the host at `where`, and waits at most `timeout`. `name`: the expected name of the host;
/// empty: any admitted host. `credentials` and `admits` are null without keys.
/// Errors: no host listens, no answer in time, either side refuses the other, the host's own
/// message if it does not carry out the request.
result<std::string> send_control_request(const address& where, const std::string& name,
                                         const std::shared_ptr<const tls_credentials>& credentials,
                                         const std::shared_ptr<const admission>& admits,
                                         const std::string& question,
                                         std::chrono::milliseconds timeout);

} // namespace shoal::netem::wire
