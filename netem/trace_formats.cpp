#include "netem/trace_formats.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/json_text.hpp"
#include "netem/trace_readers.hpp"
#include "netem/trace_statistics.hpp"
#include "netem/trace_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <map>
#include <ostream>
#include <sstream>
#include <utility>

namespace shoal::netem {
namespace {

using namespace trace_text;

constexpr std::array formats{
    std::pair{trace_format::csv, "csv"},         std::pair{trace_format::fta, "fta"},
    std::pair{trace_format::simgrid, "simgrid"}, std::pair{trace_format::counts, "counts"},
    std::pair{trace_format::events, "events"},   std::pair{trace_format::peers, "peers"}};

/// `value` / `speed`, or `forever` if it is out of range.
duration quickened(duration value, double speed) {
  if (speed == 1 || value == forever) return value;
  const double seconds = to_seconds(value) / speed;
  return seconds < 9e9 ? from_seconds(seconds) : forever;
}

/// Formats seconds with as many decimals as needed.
std::string seconds(duration value) {
  std::string out =
      fmt::format("{}.{:09}", value.count() / 1'000'000'000, value.count() % 1'000'000'000);
  out.erase(out.find_last_not_of('0') + 1);
  return out.ends_with('.') ? out.substr(0, out.size() - 1) : out;
}

void write_fta(std::ostream& out, const trace& what) {
  out << "# "
         "event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\tevent_start_"
         "time\tevent_end_time\t"
         "event_end_reason\n";
  std::size_t event = 0, node = 0;
  for (const trace::peer& peer : what.peers()) {
    const auto row = [&](int type, duration from, duration to) {
      out << event++ << "\t0\t" << node << "\t0\t" << peer.name << '\t' << type << '\t'
          << seconds(from) << '\t' << (to == forever ? "NULL" : seconds(to)) << "\t0\n";
    };
    duration before{};
    for (const session& s : *peer.sessions) {
      if (before < s.start) row(0, before, s.start);
      row(1, s.start, s.end);
      before = s.end;
    }
    if (before < what.end()) row(0, before, what.end());
    ++node;
  }
}

void write_simgrid(std::ostream& out, const trace& what) {
  SHOAL_CHECK(what.peers().size() == 1, "a simgrid profile describes one host");
  const auto& sessions = *what.peers().front().sessions;
  std::vector<std::pair<duration, int>> points;
  if (sessions.empty() || sessions.front().start > duration::zero()) points.emplace_back(0, 0);
  for (const session& s : sessions) {
    points.emplace_back(s.start, 1);
    if (s.end != forever && (what.loop() == duration::zero() || s.end < what.loop()))
      points.emplace_back(s.end, 0);
  }
  if (what.loop() > duration::zero())
    out << "LOOPAFTER " << seconds(what.loop() - points.back().first) << '\n';
  for (const auto& [at, up] : points) out << seconds(at) << ' ' << up << '\n';
}

void write_counts(std::ostream& out, const trace& what) {
  out << "s,count\n";
  std::int64_t last = 0;
  duration at{};
  for (const auto& [when, count] : live_counts(what)) {
    out << seconds(when) << ',' << count << '\n';
    last = count;
    at = when;
  }
  if (at < what.end()) out << seconds(what.end()) << ',' << last << '\n';
}

void write_events(std::ostream& out, const trace& what) {
  /// The names that left and came, by time.
  std::map<duration, std::pair<std::vector<std::string>, std::vector<std::string>>> changes;
  changes[duration::zero()];
  for (const trace::peer& peer : what.peers())
    for (const session& s : *peer.sessions) {
      changes[s.start].second.push_back(peer.name);
      if (s.end != forever) changes[s.end].first.push_back(peer.name);
    }
  const auto line = [&](duration when, const char* word, const std::vector<std::string>& nodes) {
    std::string ms = fmt::format("{}.{:06}", when.count() / 1'000'000, when.count() % 1'000'000);
    ms.erase(ms.find_last_not_of('0') + 1);
    if (ms.ends_with('.')) ms.pop_back();
    out << '[' << ms << ", \"" << word << "\", "
        << clean_json_text(nlohmann::json{{"nodes", nodes}}) << "]\n";
  };
  for (const auto& [when, both] : changes) {
    if (!both.first.empty()) line(when, "remove", both.first);
    if (!both.second.empty()) line(when, "add", both.second);
  }
  if (changes.rbegin()->first < what.end()) line(what.end(), "no-op", {});
}

} // namespace

std::string_view name_of(trace_format what) {
  for (const auto& [format, name] : formats)
    if (format == what) return name;
  return "";
}

std::optional<trace_format> trace_format_of(std::string_view name) {
  for (const auto& [format, known] : formats)
    if (name == known) return format;
  return std::nullopt;
}

trace_format detect_trace_format(std::string_view beginning) {
  if (beginning.starts_with("\xef\xbb\xbf")) beginning.remove_prefix(3);
  for (std::size_t at = 0; at < beginning.size();) {
    const std::size_t end = std::min(beginning.find('\n', at), beginning.size());
    std::string_view whole = beginning.substr(at, end - at);
    at = end + 1;
    if (whole.ends_with('\r')) whole.remove_suffix(1);
    const std::string_view line = trimmed(whole.substr(0, whole.find('#')), 1).text;
    if (line.empty()) continue;
    if (line.starts_with('[')) return trace_format::events;
    const auto tabs = split(whole, '\t');
    if (tabs.size() >= 6 || tabs.front().text == "event_id") return trace_format::fta;
    const auto spaced = words(line);
    const auto comma = split(line, ',');
    if (spaced.front().text == "PERIODICITY" || spaced.front().text == "LOOPAFTER")
      return trace_format::simgrid;
    if (comma.size() == 1 && spaced.size() == 2 && is_number(spaced[0].text) &&
        is_number(spaced[1].text))
      return trace_format::simgrid;
    if (comma.size() == 2 && (comma[1].text == "count" || is_number(comma[1].text)))
      return trace_format::counts;
    return line.starts_with("id,name,machine") ? trace_format::peers : trace_format::csv;
  }
  return trace_format::csv;
}

trace_result read_trace_as(std::istream& in, const std::string& name, const trace_options& how) {
  try {
    trace_format format = trace_format::csv;
    if (how.format) {
      format = *how.format;
    } else {
      std::string beginning(65536, '\0');
      in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
      beginning.resize(static_cast<std::size_t>(in.gcount()));
      in.clear();
      format = detect_trace_format(beginning);
      if (!in.seekg(0)) { // a pipe cannot seek
        in.clear();
        std::stringstream all;
        all << beginning;
        if (in.peek() != std::istream::traits_type::eof()) all << in.rdbuf();
        auto known = how;
        known.format = format;
        return read_trace_as(all, name, known);
      }
    }
    const std::string unit =
        how.unit.empty() ? (format == trace_format::events ? "ms" : "s") : how.unit;
    switch (format) {
    case trace_format::csv:
      return read_trace(in, how.known, unit);
    case trace_format::fta:
      return read_fta(in, unit);
    case trace_format::simgrid:
      return read_simgrid(in, unit, name);
    case trace_format::counts:
      return read_counts(in, unit, how.seed);
    case trace_format::events:
      return read_events(in, unit);
    case trace_format::peers:
      return read_peers(in, how.known);
    }
  } catch (const std::ios_base::failure&) { // the path is a folder, or the disk is broken
  }
  trace_result out;
  out.problems.push_back({1, 1, 1, "cannot be read", {}, {}});
  return out;
}

result<trace> load_traces(std::span<const std::string> files, const trace_options& how) {
  trace out;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& path = files[i];
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in)
      return failure{fmt::format("{}: error: cannot be read: {}", path, std::strerror(errno))};
    trace_result read = read_trace_as(in, std::filesystem::path(path).stem().string(), how);
    if (!read.problems.empty()) {
      const trace_problem& first = read.problems.front();
      return failure{
          fmt::format("{}:{}:{}: error: {}", path, first.line, first.column, first.message)};
    }
    if (files.size() == 1) return std::move(read.value);
    if (i > 0 && read.value.loop() != out.loop())
      return failure{fmt::format("{}: error: it begins again after {}, {} after {}", path,
                                 to_string(read.value.loop()), files[0], to_string(out.loop()))};
    for (const trace::peer& peer : read.value.peers()) {
      if (std::any_of(out.peers().begin(), out.peers().end(),
                      [&](const auto& other) { return other.name == peer.name; }))
        return failure{
            fmt::format("{}: error: '{}' is in another of these files too", path, peer.name)};
      out.add(peer.name);
      for (const session& s : *peer.sessions) out.add(peer.name, s);
    }
    out.seen_until(read.value.end());
    if (read.value.loop() > duration::zero()) out.set_loop(read.value.loop());
  }
  return out;
}

trace windowed(const trace& what, const trace_window& how) {
  const bool loops = (how.loop && what.end() <= longest_loop) || what.loop() > duration::zero();
  const duration period = what.loop() > duration::zero() ? what.loop() : what.end();
  if (loops && period == duration::zero()) return what;
  const duration begin = loops ? how.offset % period : how.offset;
  trace out;
  for (const trace::peer& peer : what.peers()) {
    out.add(peer.name);
    std::vector<session> moved, wrapped;
    for (session s : *peer.sessions) {
      if (loops) s.end = std::min(s.end, period);
      if (s.end > begin)
        moved.push_back(
            {std::max(s.start, begin) - begin, s.end == forever ? forever : s.end - begin});
      if (loops && s.start < begin)
        wrapped.push_back({s.start + period - begin, std::min(s.end, begin) + period - begin});
    }
    if (!moved.empty() && !wrapped.empty() && moved.back().end == wrapped.front().start) {
      moved.back().end = wrapped.front().end;
      wrapped.erase(wrapped.begin());
    }
    moved.insert(moved.end(), wrapped.begin(), wrapped.end());
    for (const session& s : moved) {
      const session quick{quickened(s.start, how.speed), quickened(s.end, how.speed)};
      if (quick.start < quick.end) out.add(peer.name, quick);
    }
  }
  out.seen_until(
      quickened(loops ? period : std::max(what.end() - begin, duration::zero()), how.speed));
  if (loops && out.end() >= shortest_lifetime && out.end() <= longest_loop) out.set_loop(out.end());
  return out;
}

std::optional<std::string_view> unwritable_name(const trace& what, trace_format format) {
  if (format != trace_format::csv && format != trace_format::fta) return std::nullopt;
  const std::string_view taken = format == trace_format::csv ? ",#\r\n" : "\t#\r\n";
  for (const trace::peer& peer : what.peers()) {
    const std::string_view name = peer.name;
    const bool nameless = name.empty() || (format == trace_format::fta && name == "NULL");
    if (nameless || name.find_first_of(taken) != std::string_view::npos ||
        trimmed(name, 1).text != name)
      return name;
  }
  return std::nullopt;
}

void write_trace_as(std::ostream& out, const trace& what, trace_format format) {
  switch (format) {
  case trace_format::csv:
    return write_trace(out, what);
  case trace_format::fta:
    return write_fta(out, what);
  case trace_format::simgrid:
    return write_simgrid(out, what);
  case trace_format::counts:
    return write_counts(out, what);
  case trace_format::events:
    return write_events(out, what);
  case trace_format::peers:
    SHOAL_CHECK(false, "peers.csv is written by runs alone");
  }
}

} // namespace shoal::netem
