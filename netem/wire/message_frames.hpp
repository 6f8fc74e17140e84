// Cuts an encoded message into the frames of a link: one frame, or a first frame and pieces.
#pragma once

#include "netem/tcp.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/message_codec.hpp"

#include <cstdint>
#include <vector>

namespace shoal::netem::wire {

/// The actor number of a message without a sender.
inline constexpr std::uint32_t no_sender = 0xffffffff;
inline constexpr std::size_t piece_bytes = longest_piece;
/// The piece on a paced line. It takes 13 ms at 10 Mbit/s.
inline constexpr std::size_t paced_piece_bytes = std::size_t{16} << 10;

/// `piece`: the bytes of the longest frame. Frames share the payloads and do not copy them.
std::vector<frame> frames_of(message_head head, encoded_message what, std::size_t piece);

} // namespace shoal::netem::wire
