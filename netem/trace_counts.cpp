#include "kernels/base/rng.hpp"
#include "kernels/base/text_fields.hpp"
#include "netem/trace_readers.hpp"
#include "netem/trace_text.hpp"

#include <deque>

namespace shoal::netem {
namespace {

using namespace trace_text;

constexpr std::uint64_t most_nodes = 4'000'000;
/// A limit for the sessions, since a short text can describe very many.
constexpr std::uint64_t most_endings = 4'000'000;

class counts_reader : reader {
public:
  counts_reader(std::istream& in, const std::string& unit, std::uint64_t seed)
      : reader(in, unit), draws_(stream(seed, "trace.counts")) {}

  trace_result read() {
    bool first = true;
    while (out_.problems.size() < most_trace_problems) {
      const auto line = next_line();
      if (!line) {
        if (lines_.too_long) continue;
        break;
      }
      const auto columns = split(*line, ',');
      const bool header = first && columns.size() == 2 && columns[1].text == "count";
      first = false;
      if (!header)
        row(columns, *line);
      else if (const auto unit = unit_of(columns[0].text); !unit.empty())
        unit_ = unit;
    }
    if (!any_ && out_.problems.empty()) problem({}, "empty: expected lines 'time,count'");
    if (out_.problems.empty()) build();
    return std::move(out_);
  }

private:
  struct present {
    std::size_t node;
    duration since;
  };

  /// The unit that a header's first column gives for the times below.
  static std::string unit_of(std::string_view word) {
    for (const char* unit : {"ms", "s", "min", "h"})
      if (word == unit) return unit;
    return {};
  }

  void row(const std::vector<field>& columns, std::string_view line) {
    if (columns.size() != 2)
      return problem(trimmed(line, 1), fmt::format("{} column{}, expected the 2 of 'time,count'",
                                                   columns.size(), columns.size() == 1 ? "" : "s"));
    const auto at = time(columns[0], "time");
    const std::string_view text = columns[1].text;
    const auto nodes = number_of<std::uint64_t>(text);
    if (!nodes)
      return problem(columns[1],
                     fmt::format("expected a number of nodes, not {}", in_quotes(text)));
    const auto count = *nodes;
    if (count > most_nodes)
      return problem(columns[1], fmt::format("more than {} nodes", most_nodes));
    if (!at) return;
    if (any_ && *at < now_)
      return problem(columns[0], fmt::format("out of order: the line before this one is at {}",
                                             to_string(now_)));
    any_ = true;
    now_ = *at;
    while (there_.size() < count) come();
    if (there_.size() > count && (endings_ += there_.size() - count) > most_endings)
      return problem(columns[1], fmt::format("more than {} sessions", most_endings));
    if (there_.size() > count) end_some(there_.size() - count);
  }

  void come() {
    if (away_.empty()) away_.push_back(sessions_.size()), sessions_.emplace_back();
    there_.push_back({away_.front(), now_});
    away_.pop_front();
  }

  void end_some(std::size_t count) {
    // Nodes that came at this very time are at the back, and are not candidates.
    auto old =
        static_cast<std::size_t>(std::find_if(there_.begin(), there_.end(),
                                              [&](const present& p) { return p.since == now_; }) -
                                 there_.begin());
    for (; count > 0 && old > 0; --count, --old) {
      const present gone = std::exchange(there_[draws_.below(old)], there_[old - 1]);
      there_.erase(there_.begin() + static_cast<std::ptrdiff_t>(old) - 1);
      sessions_[gone.node].push_back({gone.since, now_});
      away_.push_back(gone.node);
    }
    for (; count > 0; --count) {
      away_.push_front(there_.back().node);
      there_.pop_back();
    }
  }

  void build() {
    for (const present& p : there_) sessions_[p.node].push_back({p.since, forever});
    bool any = false;
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      const std::string name = "node-" + std::to_string(i);
      out_.value.add(name);
      for (const session& s : sessions_[i]) out_.value.add(name, s), any = true;
    }
    out_.value.seen_until(now_);
    if (!any) problem({}, "no sessions: no count is above 0");
  }

  rng draws_;
  std::vector<std::vector<session>> sessions_; // by node
  std::vector<present> there_;                 // nodes that came at this time are at the back
  std::deque<std::size_t> away_;               // the longest away is in front
  std::uint64_t endings_ = 0;
  bool any_ = false;
  duration now_{};
};

} // namespace

trace_result read_counts(std::istream& in, const std::string& unit, std::uint64_t seed) {
  return counts_reader(in, unit, seed).read();
}

} // namespace shoal::netem
