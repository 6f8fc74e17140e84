// The readers behind read_trace_as(), one format each. Not for others.
#pragma once

#include "netem/trace.hpp"

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace shoal::netem {

inline constexpr std::size_t longest_event_line =
    4 << 20; ///< bytes: a line names all the nodes that come at once

trace_result read_fta(std::istream& in, const std::string& unit);
trace_result read_simgrid(std::istream& in, const std::string& unit, const std::string& host);
trace_result read_counts(std::istream& in, const std::string& unit, std::uint64_t seed);
trace_result read_events(std::istream& in, const std::string& unit);
trace_result read_peers(std::istream& in, const std::function<bool(std::string_view)>& known);

} // namespace shoal::netem
