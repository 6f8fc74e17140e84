// gRPC's reasons in the words of an operator.
#pragma once

#include <string>

namespace shoal::netem::wire {

/// A failure to dial, or the end of a connection. gRPC says 'failed to connect to all addresses;
/// last error: UNKNOWN: ipv4:127.0.0.1:7000: Failed to connect to remote host: Connection refused'.
/// Returns another text as it is.
std::string in_plain_words(const std::string& from_grpc);

} // namespace shoal::netem::wire
