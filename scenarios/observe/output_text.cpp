#include "scenarios/observe/output_text.hpp"

#include "actors/training/observations.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace shoal::scenarios {

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string limit_in_words(std::string_view why) {
  static const std::map<std::string_view, std::string_view> words{
      {"connecting", "connection set-up"},
      {"latency", "delay before the first byte"},
      {"slow_start", "slow start"},
      {"window", "congestion window"},
      {"max_window", "largest window"},
      {"loss", "packet loss"},
      {"cap", "the path's cap for one connection"}};
  const auto found = words.find(why);
  return std::string(found == words.end() ? why : found->second);
}

std::string_view phase_name(actors::peer_phase phase) {
  switch (phase) {
  case actors::peer_phase::joining:
    return "joining";
  case actors::peer_phase::computing:
    return "computing";
  case actors::peer_phase::averaging:
    return "averaging";
  case actors::peer_phase::downloading:
    return "downloading";
  case actors::peer_phase::gone:
    return "gone";
  }
  return "?";
}

std::string range_text(std::uint64_t begin, std::uint64_t end) {
  return end - begin == 1 ? fmt::format("{}", begin) : fmt::format("{}..{}", begin, end - 1);
}

std::string ranges_text(std::span<const actors::sample_range> ranges) {
  constexpr std::size_t shown = 8;
  std::string out;
  for (std::size_t i = 0; i < ranges.size() && i < shown; ++i) {
    if (i != 0) out += ", ";
    out += range_text(ranges[i].first, ranges[i].end());
  }
  if (ranges.size() > shown) out += fmt::format(" and {} more", ranges.size() - shown);
  return out;
}

std::string time_text(duration time) {
  const auto ns = time.count();
  return fmt::format("{}.{:09} s", ns / 1'000'000'000, ns % 1'000'000'000);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

} // namespace shoal::scenarios
