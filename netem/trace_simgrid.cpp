#include "kernels/base/text_fields.hpp"
#include "netem/trace_readers.hpp"
#include "netem/trace_text.hpp"

namespace shoal::netem {
namespace {

using namespace trace_text;

class simgrid_reader : reader {
public:
  using reader::reader;

  trace_result read(const std::string& host) {
    while (out_.problems.size() < most_trace_problems) {
      const auto line = next_line();
      if (!line) {
        if (lines_.too_long) continue;
        break;
      }
      row(words(*line), *line);
    }
    if (after_ > duration::zero() && !points_.empty() &&
        (after_ > longest_loop || points_.back().at > longest_loop - after_))
      problem({}, "the loop begins too late to be represented");
    if (points_.empty() && out_.problems.empty()) problem({}, "empty: expected lines 'time value'");
    if (out_.problems.empty()) build(host);
    return std::move(out_);
  }

private:
  struct point {
    duration at;
    bool up;
  };

  void row(const std::vector<field>& columns, std::string_view line) {
    if (columns.size() != 2)
      return problem(trimmed(line, 1), "expected 'time value', or 'LOOPAFTER seconds'");
    const auto& [first, second] = std::pair(columns[0], columns[1]);
    if (first.text == "PERIODICITY" || first.text == "LOOPAFTER") {
      if (const auto after = time(second, "the pause before the loop")) {
        if (*after == duration::zero() && first.text == "LOOPAFTER")
          problem(second, "the pause before the loop has to be above 0");
        after_ = *after;
      }
      return;
    }
    const auto at = time(first, "time");
    const auto value = number_of<double>(second.text);
    if (!value || !(*value >= 0))
      return problem(second, fmt::format("expected a value of 0 (unavailable) or more, not {}",
                                         in_quotes(second.text)));
    if (!at) return;
    if (!points_.empty() && *at < points_.back().at)
      return problem(first, fmt::format("out of order: the line before this one is at {}",
                                        to_string(points_.back().at)));
    points_.push_back({*at, *value > 0});
  }

  void build(const std::string& host) {
    out_.value.add(host);
    const bool loops = after_ > duration::zero();
    bool up = loops && points_.front().at > duration::zero() ? points_.back().up : true;
    duration since{};
    for (const point& p : points_) {
      if (up && !p.up && since < p.at) out_.value.add(host, {since, p.at});
      if (!up && p.up) since = p.at;
      up = p.up;
    }
    if (up) out_.value.add(host, {since, forever});
    out_.value.seen_until(points_.back().at);
    if (!loops) return;
    out_.value.seen_until(points_.back().at + after_);
    out_.value.set_loop(points_.back().at + after_);
  }

  std::vector<point> points_;
  duration after_{};
};

} // namespace

trace_result read_simgrid(std::istream& in, const std::string& unit, const std::string& host) {
  return simgrid_reader(in, unit).read(host);
}

} // namespace shoal::netem
