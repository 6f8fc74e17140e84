#include "netem/line_trace.hpp"

#include "kernels/base/text_fields.hpp"
#include "netem/trace_text.hpp"

namespace shoal::netem {
namespace {

using namespace trace_text;

class line_trace_reader : reader {
public:
  explicit line_trace_reader(std::istream& in) : reader(in, "s") {}

  line_trace_result read() {
    const auto head = next_line();
    if (!head) {
      if (out_.problems.empty())
        problem({}, "empty: expected a header such as 'time,up,down,delay,loss'");
    } else if (read_header(*head)) {
      while (const auto line = next_line()) read_row(*line);
      if (made_.changes.empty() && out_.problems.empty())
        problem({}, "no rows: nothing ever changes");
    }
    made_.problems = std::move(out_.problems);
    return std::move(made_);
  }

private:
  bool read_header(std::string_view line) {
    for (const field& name : split(line, ',')) {
      const bool known = name.text == "time" || name.text == "up" || name.text == "down" ||
                         name.text == "delay" || name.text == "loss";
      const bool twice = std::find(columns_.begin(), columns_.end(), name.text) != columns_.end();
      if (!known)
        problem(name, fmt::format("unknown column {}: there are time, up, down, delay and loss",
                                  in_quotes(name.text)));
      else if (twice)
        problem(name, fmt::format("the column {} is there twice", in_quotes(name.text)));
      columns_.emplace_back(name.text);
    }
    if (out_.problems.empty() && columns_.front() != "time")
      problem(split(line, ',').front(), "the first column has to be 'time'");
    if (out_.problems.empty() && columns_.size() == 1)
      problem(split(line, ',').front(), "no column besides 'time', so nothing changes");
    return out_.problems.empty();
  }

  void read_row(std::string_view line) {
    const auto fields = split(line, ',');
    if (fields.size() != columns_.size())
      return problem(trimmed(line, 1),
                     fmt::format("{} column{}, expected the {} of the header", fields.size(),
                                 fields.size() == 1 ? "" : "s", columns_.size()));
    const std::size_t before = out_.problems.size();
    line_change row;
    if (const auto at = time(fields[0], "time")) row.at = *at;
    if (out_.problems.size() == before && !made_.changes.empty() &&
        row.at <= made_.changes.back().at)
      problem(fields[0], fmt::format("out of order: the row before this one is at {}",
                                     to_string(made_.changes.back().at)));
    for (std::size_t i = 1; i < fields.size(); ++i) {
      const field& f = fields[i];
      if (f.text.empty()) continue;
      if (columns_[i] == "up") rate(f, row.up);
      if (columns_[i] == "down") rate(f, row.down);
      if (columns_[i] == "delay") row.delay = time(f, "delay");
      if (columns_[i] == "loss") fraction(f, row.loss);
    }
    if (out_.problems.size() == before) made_.changes.push_back(row);
  }

  void rate(const field& f, std::optional<data_rate>& out) {
    auto value = parse_rate(f.text);
    if (!value) return problem(f, value.error());
    if (value->bits_per_second <= 0)
      return problem(f, "a rate is above 0; a 'blackhole' fault cuts a host off");
    out = *value;
  }

  void fraction(const field& f, std::optional<double>& out) {
    const bool percent = f.text.ends_with('%');
    const auto text = f.text.substr(0, f.text.size() - (percent ? 1 : 0));
    const auto number = number_of<double>(text);
    if (!number)
      return problem(f,
                     fmt::format("expected a number or a percentage, not {}", in_quotes(f.text)));
    const double value = percent ? *number / 100 : *number;
    if (!(value >= 0 && value < 1)) return problem(f, "a loss is at least 0 and below 100%");
    out = value;
  }

  std::vector<std::string> columns_;
  line_trace_result made_;
};

} // namespace

line_trace_result read_line_trace(std::istream& in) {
  try {
    return line_trace_reader(in).read();
  } catch (const std::ios_base::failure&) { // the path is a folder, or the disk is broken
    line_trace_result out;
    out.problems.push_back({1, 1, 1, "cannot be read", {}, {}});
    return out;
  }
}

} // namespace shoal::netem
