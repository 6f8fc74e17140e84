// The rows of metrics.csv as OpenMetrics text with timestamps, which promtool makes blocks of:
//   promtool tsdb create-blocks-from openmetrics FILE
// Times are seconds since the run began.
// Source: OpenMetrics 1.0, sections 'Text Format' and 'Suffixes': a counter's family has the name
// without '_total', families are not interleaved, and the text ends with '# EOF'.
#include "scenarios/export/export_formats.hpp"
#include "scenarios/observe/metrics.hpp"
#include "scenarios/observe/run_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace shoal::scenarios {

// A format may name its parts as other formats name theirs.
namespace openmetrics_format_parts {
namespace {

std::string family_of(const metric_definition& what) {
  constexpr std::string_view total = "_total";
  std::string out(what.name);
  if (what.kind == metric_kind::counter && out.ends_with(total))
    out.resize(out.size() - total.size());
  return out;
}

result<std::string> write(const recorded_run& run, const std::filesystem::path& to) {
  std::string out, family;
  std::size_t samples = 0;
  for (const auto& metric : metric_definitions()) {
    const auto column =
        std::find(run.metrics.columns.begin(), run.metrics.columns.end(), metric.column);
    if (metric.column.empty() || column == run.metrics.columns.end()) continue;
    const auto at = static_cast<std::size_t>(column - run.metrics.columns.begin());
    // Metrics of one family stand together in the list of definitions.
    if (family_of(metric) != family) {
      family = family_of(metric);
      out += fmt::format("# TYPE {0} {1}\n# HELP {0} {2}\n", family,
                         metric.kind == metric_kind::counter ? "counter" : "gauge", metric.help);
    }
    const auto labels = metric.label.empty()
                            ? std::string()
                            : fmt::format("{{{}=\"{}\"}}", metric.label, metric.value);
    for (const auto& row : run.metrics.rows)
      if (row[0] && row[at]) {
        fmt::format_to(std::back_inserter(out), "{}{} {} {:.3f}\n", metric.name, labels, *row[at],
                       *row[0]);
        ++samples;
      }
  }
  out += "# EOF\n";
  if (auto written = write_file(to, out); !written) return failure{written.error()};
  return fmt::format("{} samples of {} moments", samples, run.metrics.rows.size());
}

} // namespace
} // namespace openmetrics_format_parts

export_format openmetrics_format() {
  using namespace openmetrics_format_parts;
  return {"openmetrics", "FILE", "the metrics with timestamps, for Prometheus and promtool",
          "metrics.txt", write};
}

} // namespace shoal::scenarios
