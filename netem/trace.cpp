#include "netem/trace.hpp"

#include "kernels/base/check.hpp"
#include "netem/trace_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>
#include <optional>
#include <ostream>

namespace shoal::netem {
namespace {

using namespace trace_text;

constexpr std::string_view header = "peer,start,end";
constexpr std::size_t most_columns = 3;

struct row {
  std::array<field, most_columns> fields;
  std::size_t count = 0; // columns in the line; only the first three are kept
};

row columns_of(std::string_view line) {
  row out;
  for (std::size_t at = 0; at <= line.size(); ++out.count) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    if (out.count < most_columns)
      out.fields[out.count] = trimmed(line.substr(at, end - at), at + 1);
    at = end + 1;
  }
  return out;
}

} // namespace

class trace_reader : trace_text::reader {
public:
  trace_reader(std::istream& in, const std::function<bool(std::string_view)>& known,
               const std::string& unit)
      : reader(in, unit), known_(known) {}

  trace_result read() {
    bool any = false, headed = false;
    while (out_.problems.size() < most_trace_problems && lines_.next()) {
      if (lines_.too_long) {
        problem({lines_.text, 1}, fmt::format("a line of more than {} bytes", longest_trace_line));
        if (!headed) return std::move(out_);
        continue;
      }
      std::string_view line = lines_.text;
      line = line.substr(0, line.find('#'));
      if (trimmed(line, 1).text.empty()) continue;
      const row columns = columns_of(line);
      if (!headed) {
        headed = is_header(columns);
        if (!headed) {
          problem(trimmed(line, 1), fmt::format("expected the header '{}'", header));
          return std::move(out_);
        }
        continue;
      }
      any = true;
      read_row(columns, line);
    }
    if (!headed)
      problem({}, fmt::format("empty: expected the header '{}'", header));
    else if (!any && out_.problems.empty())
      problem({}, "no sessions: no host would ever start");
    return std::move(out_);
  }

private:
  static bool is_header(const row& columns) {
    return columns.count == 3 && columns.fields[0].text == "peer" &&
           columns.fields[1].text == "start" && columns.fields[2].text == "end";
  }

  void read_row(const row& columns, std::string_view line) {
    if (columns.count != 3)
      return problem(trimmed(line, 1),
                     fmt::format("{} column{}, expected the 3 of '{}'", columns.count,
                                 columns.count == 1 ? "" : "s", header));
    const auto& [peer, from, to] = columns.fields;
    const std::size_t before = out_.problems.size();
    if (peer.text.empty()) problem(peer, "the peer is missing");
    const auto start = time(from, "start");
    const auto end = to.text == "forever" ? forever : time(to, "end");
    if (start && end && *end <= *start)
      problem(to, *end < *start
                      ? fmt::format("the session ends at {}, before it starts at {}",
                                    to_string(*end), to_string(*start))
                      : fmt::format("the session starts and ends at {}", to_string(*end)));
    if (out_.problems.size() != before) return;

    auto found = out_.value.index_.find(std::string(peer.text));
    if (found == out_.value.index_.end()) {
      // An unknown peer is stored as well, so that it is reported only once.
      if (known_ && !known_(peer.text))
        problem(peer, fmt::format("no host is called {}", in_quotes(peer.text)),
                std::string(peer.text));
    } else if (const session& last = out_.value.peers_[found->second].sessions->back();
               *start < last.end) {
      const std::string of = in_quotes(peer.text);
      return problem(
          from, *start < last.start
                    ? fmt::format("out of order: the session of {} before this one starts at {}",
                                  of, to_string(last.start))
                    : fmt::format("overlaps the session of {} before this one, which ends at {}",
                                  of, to_string(last.end)));
    }
    out_.value.add(peer.text, {*start, *end});
    out_.value.seen_until(*end == forever ? *start : *end);
  }

  const std::function<bool(std::string_view)>& known_;
};

std::shared_ptr<const std::vector<session>> trace::sessions_of(std::string_view name) const {
  static const auto none = std::make_shared<const std::vector<session>>();
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? none : peers_[found->second].sessions;
}

void trace::add(std::string_view peer, session what) {
  add(peer);
  auto& sessions = *peers_[index_.at(std::string(peer))].sessions;
  SHOAL_CHECK(what.start < what.end && (sessions.empty() || sessions.back().end <= what.start),
              "sessions of a peer are in order and do not overlap");
  sessions.push_back(what);
}

void trace::add(std::string_view peer) {
  const auto [found, fresh] = index_.emplace(std::string(peer), peers_.size());
  if (fresh) peers_.push_back({found->first, std::make_shared<std::vector<session>>()});
}

void trace::set_loop(duration period) {
  SHOAL_CHECK(period >= end_ && period > duration::zero() && period <= longest_loop,
              "a loop is not shorter than what it repeats");
  loop_ = period;
  for (const peer& of : peers_)
    if (!of.sessions->empty()) of.sessions->back().end = std::min(of.sessions->back().end, period);
}

bool trace::operator==(const trace& other) const {
  return std::equal(
      peers_.begin(), peers_.end(), other.peers_.begin(), other.peers_.end(),
      [](const peer& a, const peer& b) { return a.name == b.name && *a.sessions == *b.sessions; });
}

trace_result read_trace(std::istream& in, const std::function<bool(std::string_view)>& known,
                        const std::string& unit) {
  try {
    return trace_reader(in, known, unit).read();
  } catch (const std::ios_base::failure&) { // the path is a folder, or the disk is broken
    trace_result out;
    out.problems.push_back({1, 1, 1, "cannot be read", {}, {}});
    return out;
  }
}

result<trace> load_trace(const std::string& path,
                         const std::function<bool(std::string_view)>& known) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure{fmt::format("{}: error: cannot be read: {}", path, std::strerror(errno))};
  trace_result read = read_trace(in, known);
  if (read.problems.empty()) return std::move(read.value);
  const trace_problem& first = read.problems.front();
  return failure{fmt::format("{}:{}:{}: error: {}", path, first.line, first.column, first.message)};
}

void write_trace(std::ostream& out, const trace& what) {
  out << header << '\n';
  for (const trace::peer& peer : what.peers())
    for (const session& s : *peer.sessions)
      out << peer.name << ',' << to_string(s.start) << ','
          << (s.end == forever ? "forever" : to_string(s.end)) << '\n';
}

} // namespace shoal::netem
