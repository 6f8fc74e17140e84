// The readers behind read_trace_as(), one for each format. Internal to the trace formats.
#pragma once

#include "netem/trace.hpp"

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace shoal::netem {

/// Bytes. One line names all nodes that come at the same time.
inline constexpr std::size_t longest_event_line = 4 << 20;

trace_result read_fta(std::istream& in, const std::string& unit);
trace_result read_simgrid(std::istream& in, const std::string& unit, const std::string& host);
trace_result read_counts(std::istream& in, const std::string& unit, std::uint64_t seed);
trace_result read_events(std::istream& in, const std::string& unit);
trace_result read_peers(std::istream& in, const std::function<bool(std::string_view)>& known);

} // namespace shoal::netem
