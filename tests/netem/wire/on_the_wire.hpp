// A frame as the bytes of a connection: the prefix, the frame, and the padding.
#pragma once

#include "netem/wire/frame_stream.hpp"

#include <string>

namespace shoal::netem::wire {

inline std::string on_the_wire(const std::string& frame) {
  const auto prefix = frame_prefix(frame.size());
  return std::string(prefix.begin(), prefix.end()) + frame +
         std::string(padding_after(frame.size()), '\0');
}

} // namespace shoal::netem::wire
