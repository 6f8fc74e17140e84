#include "netem/trace.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>
#include <optional>
#include <ostream>

#include <fmt/format.h>

#include "kernels/base/check.hpp"

namespace shoal::netem {
namespace {

constexpr std::string_view header = "peer,start,end";
constexpr std::size_t most_columns = 3;

/// In quotes, fit for one line of a terminal.
std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 48;
  std::string out = "'";
  for (char c : text.substr(0, longest)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out + (text.size() > longest ? "...'" : "'");
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// A part of a line with its place in it.
struct field {
  std::string_view text;
  std::size_t column = 1;   // 1-based
};

field trimmed(std::string_view text, std::size_t column) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {text.substr(0, 0), column};
  return {text.substr(first, text.find_last_not_of(" \t") - first + 1), column + first};
}

struct row {
  std::array<field, most_columns> fields;
  std::size_t count = 0;   // of columns in the line; only the first three are kept
};

row split(std::string_view line) {
  row out;
  for (std::size_t at = 0; at <= line.size(); ++out.count) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    if (out.count < most_columns) out.fields[out.count] = trimmed(line.substr(at, end - at), at + 1);
    at = end + 1;
  }
  return out;
}

/// Reads lines of at most `longest_trace_line` bytes; of longer ones the beginning.
class line_reader {
 public:
  explicit line_reader(std::istream& in) : in_(*in.rdbuf()) {}

  /// Errors: std::ios_base::failure of the stream's buffer.
  bool next() {
    using traits = std::istream::traits_type;
    text.clear();
    too_long = false;
    traits::int_type c = in_.sbumpc();
    if (traits::eq_int_type(c, traits::eof())) return false;
    ++number;
    for (; !traits::eq_int_type(c, traits::eof()) && traits::to_char_type(c) != '\n'; c = in_.sbumpc()) {
      if (text.size() <= longest_trace_line) text += traits::to_char_type(c);
      else too_long = true;
    }
    if (text.ends_with('\r')) text.pop_back();
    if (number == 1 && text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    return true;
  }

  std::string text;
  std::size_t number = 0;
  bool too_long = false;

 private:
  std::streambuf& in_;
};

}  // namespace

class trace_reader {
 public:
  trace_reader(std::istream& in, const std::function<bool(std::string_view)>& known) : lines_(in), known_(known) {}

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
      const row columns = split(line);
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
    if (!headed) problem({}, fmt::format("empty: expected the header '{}'", header));
    else if (!any && out_.problems.empty()) problem({}, "no sessions: nobody would ever start");
    return std::move(out_);
  }

 private:
  static bool is_header(const row& columns) {
    return columns.count == 3 && columns.fields[0].text == "peer" && columns.fields[1].text == "start" &&
           columns.fields[2].text == "end";
  }

  void problem(const field& where, std::string message, std::string unknown = {}) {
    if (out_.problems.size() == most_trace_problems) return;
    out_.problems.push_back({std::max<std::size_t>(lines_.number, 1), where.column,
                             std::max<std::size_t>(where.text.size(), 1), std::move(message), std::move(unknown),
                             lines_.too_long ? std::string() : lines_.text});
  }

  std::optional<duration> time(const field& where, const char* name) {
    if (where.text.empty()) {
      problem(where, fmt::format("the {} is missing", name));
      return std::nullopt;
    }
    auto value = parse_duration(is_number(where.text) ? std::string(where.text) + "s" : std::string(where.text));
    if (value) return *value;
    problem(where, fmt::format("{}: {}", name, value.error()));
    return std::nullopt;
  }

  void read_row(const row& columns, std::string_view line) {
    if (columns.count != 3)
      return problem(trimmed(line, 1), fmt::format("{} column{}, expected the 3 of '{}'", columns.count,
                                                   columns.count == 1 ? "" : "s", header));
    const auto& [peer, from, to] = columns.fields;
    const std::size_t before = out_.problems.size();
    if (peer.text.empty()) problem(peer, "the peer is missing");
    const auto start = time(from, "start");
    const auto end = time(to, "end");
    if (start && end && *end <= *start)
      problem(to, *end < *start
                      ? fmt::format("the session ends at {}, before it starts at {}", to_string(*end), to_string(*start))
                      : fmt::format("the session starts and ends at {}", to_string(*end)));
    if (out_.problems.size() != before) return;

    auto found = out_.value.index_.find(std::string(peer.text));
    if (found == out_.value.index_.end()) {
      // An unknown peer is remembered too, so that it is reported once.
      if (known_ && !known_(peer.text))
        problem(peer, fmt::format("no host is called {}", quoted(peer.text)), std::string(peer.text));
    } else if (const session& last = out_.value.peers_[found->second].sessions->back(); *start < last.end) {
      const std::string of = quoted(peer.text);
      return problem(from, *start < last.start
                               ? fmt::format("out of order: the session of {} before this one starts at {}", of,
                                             to_string(last.start))
                               : fmt::format("overlaps the session of {} before this one, which ends at {}", of,
                                             to_string(last.end)));
    }
    out_.value.add(peer.text, {*start, *end});
  }

  line_reader lines_;
  const std::function<bool(std::string_view)>& known_;
  trace_result out_;
};

std::shared_ptr<const std::vector<session>> trace::sessions_of(std::string_view name) const {
  static const auto none = std::make_shared<const std::vector<session>>();
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? none : peers_[found->second].sessions;
}

void trace::add(std::string_view peer, session what) {
  const auto [found, fresh] = index_.emplace(std::string(peer), peers_.size());
  if (fresh) peers_.push_back({found->first, std::make_shared<std::vector<session>>()});
  auto& sessions = *peers_[found->second].sessions;
  SHOAL_CHECK(what.start < what.end && (sessions.empty() || sessions.back().end <= what.start),
              "sessions of a peer are in order and do not overlap");
  sessions.push_back(what);
}

bool trace::operator==(const trace& other) const {
  return std::equal(peers_.begin(), peers_.end(), other.peers_.begin(), other.peers_.end(),
                    [](const peer& a, const peer& b) { return a.name == b.name && *a.sessions == *b.sessions; });
}

trace_result read_trace(std::istream& in, const std::function<bool(std::string_view)>& known) {
  try {
    return trace_reader(in, known).read();
  } catch (const std::ios_base::failure&) {   // a folder, a broken disk
    trace_result out;
    out.problems.push_back({1, 1, 1, "cannot be read", {}, {}});
    return out;
  }
}

result<trace> load_trace(const std::string& path, const std::function<bool(std::string_view)>& known) {
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
      out << peer.name << ',' << to_string(s.start) << ',' << to_string(s.end) << '\n';
}

}  // namespace shoal::netem
