#include "netem/trace_readers.hpp"
#include "netem/trace_text.hpp"

namespace shoal::netem {
namespace {

using namespace trace_text;

constexpr std::string_view peers_header = "id,name,machine,incarnation,started_s,ended_s,reason";

class peers_reader : reader {
public:
  peers_reader(std::istream& in, const std::function<bool(std::string_view)>& known)
      : reader(in, "s"), known_(known) {}

  trace_result read() {
    bool headed = false;
    while (out_.problems.size() < most_trace_problems) {
      const auto line = next_line();
      if (!line) {
        if (lines_.too_long) continue;
        break;
      }
      if (headed)
        row(split(*line, ','), *line);
      else if (*line == peers_header)
        headed = true;
      else {
        problem(trimmed(*line, 1), fmt::format("expected the header '{}'", peers_header));
        break;
      }
    }
    if (!headed && out_.problems.empty())
      problem({}, fmt::format("empty: expected the header '{}'", peers_header));
    else if (out_.value.peers().empty() && out_.problems.empty())
      problem({}, "no sessions: no host would ever start");
    return std::move(out_);
  }

private:
  void row(const std::vector<field>& columns, std::string_view line) {
    if (columns.size() != 7)
      return problem(trimmed(line, 1), fmt::format("{} columns, expected the 7 of '{}'",
                                                   columns.size(), peers_header));
    const field& name = columns[1];
    if (name.text.empty()) return problem(name, "the name is missing");
    if (known_ && !known_(name.text))
      return problem(name, fmt::format("no host is called {}", in_quotes(name.text)),
                     std::string(name.text));
    const auto start = time(columns[4], "started_s");
    const auto end = columns[5].text.empty() ? forever : time(columns[5], "ended_s");
    if (!start || !end) return;
    out_.value.seen_until(*end == forever ? *start : *end);
    const auto before = out_.value.sessions_of(name.text);
    if (*end < *start)
      return problem(columns[5], fmt::format("the session ends at {}, before it starts at {}",
                                             to_string(*end), to_string(*start)));
    if (!before->empty() && *start < before->back().end)
      return problem(columns[4],
                     fmt::format("overlaps the session of {} before this one, which ends at {}",
                                 in_quotes(name.text), to_string(before->back().end)));
    if (*start < *end) out_.value.add(name.text, {*start, *end});
  }

  const std::function<bool(std::string_view)>& known_;
};

} // namespace

trace_result read_peers(std::istream& in, const std::function<bool(std::string_view)>& known) {
  return peers_reader(in, known).read();
}

} // namespace shoal::netem
