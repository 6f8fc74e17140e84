// The models beside every stored reference, as Markdown: accuracy_report DATA_DIR > results/netem/accuracy.md
#include <cmath>
#include <cstdio>

#include "tests/accuracy/compare.hpp"

namespace {

using namespace shoal::accuracy;

void table(const std::filesystem::path& folder, const char* suffix, shoal::netem::tcp_options tcp, const char* title) {
  const auto rows = compare(folder, suffix, tcp);
  std::printf("\n## %s\n\n", title);
  std::printf("| pattern | flows | %s, s | tcp, s | error | lv08 | max_min | mean flow, tcp | mean flow, lv08 |\n"
              "|---|---|---|---|---|---|---|---|---|\n", suffix);
  for (const auto& row : rows)
    std::printf("| %s | %zu | %.3f | %.3f | %+.1f %% | %+.1f %% | %+.1f %% | %+.1f %% | %+.1f %% |\n", row.name.c_str(), row.flows,
                row.reference, row.tcp.last, 100 * row.error(row.tcp), 100 * row.error(row.lv08), 100 * row.error(row.max_min),
                100 * row.mean_error(row.tcp), 100 * row.mean_error(row.lv08));
  const auto line = [&](const char* name, auto which) {
    const auto s = summarize(rows, which);
    std::printf("\n%s: mean absolute error of the end %.1f %%, worst %+.1f %% (%s); of the mean flow %.1f %%, worst %+.1f %%.",
                name, 100 * s.mean, 100 * s.worst, s.worst_name.c_str(), 100 * s.mean_flow, 100 * s.worst_flow);
  };
  line("tcp", &comparison::tcp);
  line("lv08", &comparison::lv08);
  line("max_min", &comparison::max_min);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: accuracy_report DATA_DIR\n"), 2;
  const std::filesystem::path data = argv[1];
  std::printf("# The flow models beside packets\n\n"
              "Command: `tests/accuracy/write_report`. The references and how they were measured: `tests/accuracy/README.md`. "
              "An error is (model - reference) / reference of the time at which the last flow of a pattern ends, or of the mean "
              "over its flows.\n");
  table(data / "calibration", "ns3-newreno", shoal::netem::ns3_newreno(), "Calibrated on: six patterns, ns-3 3.37, NewReno");
  table(data / "blind", "ns3-newreno", shoal::netem::ns3_newreno(), "Not looked at before the parameters were fixed: ns-3, NewReno");
  table(data / "validation", "ns3-newreno", shoal::netem::ns3_newreno(), "Further patterns, looked at while the model was made: ns-3, NewReno");
  table(data / "linux", "linux", {}, "A real kernel: Linux 6.18, CUBIC, Shoal's defaults");
  table(data / "validation", "linux", {}, "A real kernel, further patterns: Linux 6.18, CUBIC");
  table(data / "calibration", "linux", {}, "A real kernel, the calibration patterns that this could be measured on: Linux 6.18, CUBIC");
  table(data / "linux", "linux-reno", [] { shoal::netem::tcp_options o; o.control = shoal::netem::congestion_control::reno; return o; }(),
        "A real kernel: Linux 6.18, Reno");
  auto cubic = shoal::netem::ns3_newreno();
  cubic.control = shoal::netem::congestion_control::cubic;
  cubic.slow_start_growth = 2;
  table(data / "calibration", "ns3-cubic", cubic, "ns-3 3.37, CUBIC (nothing was calibrated on it)");
  table(data / "validation", "ns3-cubic", cubic, "Further patterns: ns-3, CUBIC");
}
