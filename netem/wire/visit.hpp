// A question to a host from somebody who is none of the hosts, and its answer: what `shoal status`
// and `shoal drain` do. A pipe of its own kind: it makes no link, and what comes over it reaches no
// actor. Who is not admitted gets no answer.
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

inline constexpr const char* visit_kind = "visit";
inline constexpr std::size_t longest_question = 4096;                 ///< bytes
inline constexpr std::size_t longest_answer = std::size_t{512} << 10; ///< bytes

/// As a frame: whether what was asked was done, and what is said to it.
frame to_frame(const visit_answer& what);
/// The reverse. Nothing if there are no bytes; whatever is said first and is no yes is a no.
std::optional<visit_answer> read_visit_answer(std::span<const std::byte> bytes);

/// Asks the host at `where`, and waits for as long as `patience`. `name`: who it has to be; empty:
/// anybody who is admitted. `channel`, `admits`: null without keys. Errors: nobody is there, no
/// answer in time, it refuses us or is not admitted itself, and what it says if it does not do what
/// is asked.
result<std::string> visit(const address& where, const std::string& name,
                          const std::shared_ptr<grpc::ChannelCredentials>& channel,
                          const std::shared_ptr<const admission>& admits,
                          const std::string& question, std::chrono::milliseconds patience);

} // namespace shoal::netem::wire
