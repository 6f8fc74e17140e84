// Hosts and the ends of links in the words of an operator.
#pragma once

#include <string>
#include <string_view>

namespace shoal::netem::wire {

/// A failure to dial, or the end of a connection. gRPC says 'failed to connect to all addresses;
/// last error: UNKNOWN: ipv4:127.0.0.1:7000: Failed to connect to remote host: Connection refused'.
/// Returns another text as it is.
std::string in_plain_words(const std::string& from_grpc);
/// True if gRPC says that the machine refused the connection: no process listens at the address.
bool nothing_listens(std::string_view from_grpc);

/// 'ada (10.0.0.7:7000)'; without an address 'ada'.
std::string host_in_words(std::string_view name, std::string_view address);

/// The end of the link with that host. `why`: the reason that the wire gives.
std::string end_in_words(std::string_view name, std::string_view address, const std::string& why);

} // namespace shoal::netem::wire
