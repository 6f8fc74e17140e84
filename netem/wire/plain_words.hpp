// Hosts and the ends of links in the words of an operator.
#pragma once

#include <string>
#include <string_view>

namespace shoal::netem::wire {

/// 'ada (10.0.0.7:7000)'; without an address 'ada'.
std::string host_in_words(std::string_view name, std::string_view address);

/// The end of the link with that host. `why`: the reason that the wire gives.
std::string end_in_words(std::string_view name, std::string_view address, const std::string& why);

} // namespace shoal::netem::wire
