// How CAF serializes a payload: 4 bytes of length, then the raw bytes. The deserializer compares
// the length with the rest of its buffer before it allocates memory.
#pragma once

#include "kernels/base/payload.hpp"

#include <caf/fwd.hpp>

#include <cstddef>
#include <string>

namespace shoal {

/// The largest payload that a message may carry. Larger objects travel in chunks.
inline constexpr std::size_t max_payload_bytes = std::size_t{64} << 20;

/// Errors: end_of_stream if fewer bytes follow than the length says, invalid_argument if the
/// payload is too large.
caf::error inspect(caf::serializer& sink, payload& x);
caf::error inspect(caf::deserializer& source, payload& x);
std::string to_string(const payload& x);

} // namespace shoal
