#include "netem/trace_readers.hpp"
#include "netem/trace_text.hpp"

#include <limits>
#include <map>

namespace shoal::netem {
namespace {

using namespace trace_text;

class fta_reader : reader {
public:
  using reader::reader;

  trace_result read() {
    bool any = false;
    while (out_.problems.size() < most_trace_problems) {
      const auto line = next_line();
      if (!line) {
        if (lines_.too_long) continue;
        break;
      }
      const auto columns = split(*line, '\t');
      if (columns.front().text == "event_id") continue; // a header
      any = true;
      row(columns, *line);
    }
    if (!any) problem({}, "empty: expected lines of tab-separated events");
    if (out_.problems.empty()) build();
    return std::move(out_);
  }

private:
  struct node {
    std::string name;
    std::vector<session> sessions;
    duration last{};  // the start of its last event
    duration until{}; // the end of its last event
  };

  void row(const std::vector<field>& columns, std::string_view line) {
    if (columns.size() < 8 || columns.size() > 9)
      return problem(
          trimmed(line, 1),
          fmt::format("{} columns between tabs, expected 9: event_id component_id node_id "
                      "platform_id node_name event_type event_start_time event_end_time "
                      "event_end_reason",
                      columns.size()));
    const field &id = columns[2], &name = columns[4], &type = columns[5];
    const std::size_t before = out_.problems.size();
    if (id.text.empty()) problem(id, "the node_id is missing");
    if (type.text.empty() || type.text.find_first_not_of("0123456789") != std::string_view::npos)
      problem(type, fmt::format("event_type: expected 1 (available) or 0 (unavailable), not {}",
                                in_quotes(type.text)));
    const auto start = time(columns[6], "event_start_time");
    const auto end = columns[7].text == "NULL" ? forever : time(columns[7], "event_end_time");
    if (start && end && *end < *start)
      problem(columns[7], fmt::format("the event ends at {}, before it starts at {}",
                                      to_string(*end), to_string(*start)));
    if (out_.problems.size() != before) return;
    first_ = std::min(first_, *start);
    latest_ = std::max(latest_, *end == forever ? *start : *end);
    if (type.text != "0" && type.text != "1") return;

    const auto [found, fresh] = index_.emplace(std::string(id.text), nodes_.size());
    if (fresh) {
      const bool named = !name.text.empty() && name.text != "NULL";
      nodes_.push_back(
          {named ? std::string(name.text) : "node-" + std::string(id.text), {}, {}, {}});
    }
    node& of = nodes_[found->second];
    if (!fresh && *start < of.until)
      return problem(columns[6],
                     *start < of.last
                         ? fmt::format("out of order: the event of {} before this one starts at {}",
                                       in_quotes(of.name), to_string(of.last))
                         : fmt::format("overlaps the event of {} before this one, which ends at {}",
                                       in_quotes(of.name), to_string(of.until)));
    of.last = *start;
    of.until = *end;
    if (type.text == "0" || *end == *start) return;
    if (!of.sessions.empty() && of.sessions.back().end == *start)
      of.sessions.back().end = *end;
    else
      of.sessions.push_back({*start, *end});
  }

  void build() {
    // Nodes of equal names get their ids as suffixes, repeatedly until all names differ.
    for (bool again = true; again;) {
      again = false;
      std::map<std::string, std::size_t> names;
      for (const node& of : nodes_) ++names[of.name];
      for (const auto& [id, at] : index_)
        if (names[nodes_[at].name] > 1) nodes_[at].name += "-" + id, again = true;
    }
    bool any = false;
    for (const node& of : nodes_) {
      out_.value.add(of.name);
      for (const session& s : of.sessions) {
        any = true;
        out_.value.add(of.name, {s.start - first_, s.end == forever ? forever : s.end - first_});
      }
    }
    out_.value.seen_until(latest_ - first_);
    if (!any) problem({}, "no sessions: no event has the type 1");
  }

  std::vector<node> nodes_;
  std::map<std::string, std::size_t> index_; // by node_id
  duration first_ = duration::max(), latest_{};
};

} // namespace

trace_result read_fta(std::istream& in, const std::string& unit) {
  return fta_reader(in, unit).read();
}

} // namespace shoal::netem
