// How a payload is serialized by CAF: 4 bytes of length, then the raw bytes; the length is checked
// against what is left in the buffer before anything is allocated.
#pragma once

#include "kernels/base/payload.hpp"

#include <caf/fwd.hpp>

#include <cstddef>
#include <string>

namespace shoal {

/// The largest payload a message may carry; larger things travel in chunks.
inline constexpr std::size_t max_payload_bytes = std::size_t{64} << 20;

/// Errors: end_of_stream if fewer bytes follow than announced, invalid_argument if too large.
caf::error inspect(caf::serializer& sink, payload& x);
caf::error inspect(caf::deserializer& source, payload& x);
std::string to_string(const payload& x);

} // namespace shoal
