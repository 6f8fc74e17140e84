// Prints the models beside every stored reference, as Markdown. Usage: accuracy_report DATA_DIR >
// results/netem/accuracy.md
#include "tests/accuracy/compare.hpp"

#include <cmath>
#include <cstdio>

namespace {

using namespace shoal::accuracy;

void table(const std::filesystem::path& folder, const char* suffix, shoal::netem::tcp_options tcp,
           const char* title, bool host_queues = false) {
  const auto rows = compare(folder, suffix, tcp, host_queues);
  std::printf("\n## %s\n\n", title);
  std::printf("| pattern | flows | %s, s | tcp, s | error | lv08 | max_min | mean flow, tcp | mean "
              "flow, lv08 |\n"
              "|---|---|---|---|---|---|---|---|---|\n",
              suffix);
  for (const auto& row : rows)
    std::printf(
        "| %s | %zu | %.3f | %.3f | %+.1f %% | %+.1f %% | %+.1f %% | %+.1f %% | %+.1f %% |\n",
        row.name.c_str(), row.flows, row.reference, row.tcp.last, 100 * row.error(row.tcp),
        100 * row.error(row.lv08), 100 * row.error(row.max_min), 100 * row.mean_error(row.tcp),
        100 * row.mean_error(row.lv08));
  const auto line = [&](const char* name, auto which) {
    const auto s = summarize(rows, which);
    std::printf("\n%s: mean absolute error of the end %.1f %%, worst %+.1f %% (%s); of the mean "
                "flow %.1f %%, worst %+.1f %%.",
                name, 100 * s.mean, 100 * s.worst, s.worst_name.c_str(), 100 * s.mean_flow,
                100 * s.worst_flow);
  };
  line("tcp", &comparison::tcp);
  line("lv08", &comparison::lv08);
  line("max_min", &comparison::max_min);
  std::printf("\n");
}

void probes(const std::filesystem::path& folder) {
  std::printf(
      "\n## Small messages behind bulk: Linux 6.18, CUBIC, tbf at 10 Mbit/s\n\n"
      "Datagrams share the receiver's line with one flow of 15 MB, or with three of 6 MB and other "
      "round trips. The table has\n"
      "their mean delay. `tests/accuracy/linux_reference --probe 0:1` measures one run.\n\n"
      "| pattern | queue, packets | Linux, two runs, ms | tcp, ms | error |\n"
      "|---|---|---|---|---|\n");
  for (const auto& row : compare_probes(folder))
    std::printf("| %s | %.0f | %.0f, %.0f | %.0f | %+.0f %% |\n", row.name.c_str(), row.queue,
                1e3 * row.measured[0], 1e3 * row.measured[1], 1e3 * row.model, 100 * row.error());
}

/// Compares the solver with equations of max-min sharing without start-up.
void closed_forms() {
  std::printf("\n## Closed forms, model max_min\n\n| pattern | equation | expected, s | model, s "
              "|\n|---|---|---|---|\n");
  const auto row = [](const char* name, const char* equation, double expected,
                      const pattern& what) {
    const auto ends = times_of(run_pattern(what, shoal::netem::transfer_model::max_min, {}));
    std::printf("| %s | `%s` | %.9f | %.9f |\n", name, equation, expected, ends.last);
  };
  const std::uint64_t size = 10'000'000;
  const double bits = 8 * static_cast<double>(size);
  const auto host = [](double up, double down) {
    return shoal::accuracy::host{"h", static_cast<std::uint64_t>(up),
                                 static_cast<std::uint64_t>(down), 20'000'000};
  };
  const double d = 0.04;
  row("one flow", "d + S / min(u, v)", d + bits / 40e6,
      {{host(40e6, 1e8), host(1e8, 60e6)}, {{0, 1, size, 0}}});
  row("two on one link", "d + 2 S / C", d + 2 * bits / 40e6,
      {{host(40e6, 1e8), host(1e8, 1e8), host(1e8, 1e8)}, {{0, 1, size, 0}, {0, 2, size, 0}}});
  row("unequal caps u1 < C/2: the other gets C - u1, then all of it", "d + S / u1", d + bits / 10e6,
      {{host(10e6, 1e8), host(1e8, 1e8), host(1e8, 60e6)}, {{0, 2, size, 0}, {1, 2, 5 * size, 0}}});
  pattern incast{{host(1e8, 50e6)}, {}};
  for (std::size_t i = 1; i <= 7; ++i) {
    incast.hosts.push_back(host(1e8, 1e8));
    incast.flows.push_back({i, 0, size, 0});
  }
  row("incast of 7", "d + 7 S / v", d + 7 * bits / 50e6, incast);
  pattern ring;
  double slowest = 1e18;
  for (std::size_t i = 0; i < 16; ++i)
    ring.hosts.push_back(
        host(50e6 + 5e6 * static_cast<double>(i), 120e6 - 4e6 * static_cast<double>(i)));
  for (std::size_t i = 0; i < 16; ++i) {
    const auto to = (i + 1) % 16;
    ring.flows.push_back({i, to, size, 0});
    slowest = std::min({slowest, static_cast<double>(ring.hosts[i].up_bits_per_second),
                        static_cast<double>(ring.hosts[to].down_bits_per_second)});
  }
  row("ring of 16", "d + S / min over i of min(u_i, v_(i+1))", d + bits / slowest, ring);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: accuracy_report DATA_DIR\n"), 2;
  const std::filesystem::path data = argv[1];
  std::printf(
      "# The flow models beside packets\n\n"
      "Command: `tests/accuracy/write_report`. `tests/accuracy/README.md` lists the references "
      "and how they were\n"
      "measured. An error is (model - reference) / reference. The time is that at which the "
      "last flow of a pattern ends,\n"
      "or the mean over its flows.\n");
  closed_forms();
  table(data / "calibration", "ns3-newreno", shoal::netem::ns3_newreno(),
        "Calibrated on: six patterns, ns-3 3.37, NewReno");
  table(data / "blind", "ns3-newreno", shoal::netem::ns3_newreno(),
        "Not looked at before the parameters were fixed: ns-3, NewReno");
  table(data / "validation", "ns3-newreno", shoal::netem::ns3_newreno(),
        "Further patterns, looked at while the model was made: ns-3, NewReno");
  table(data / "linux", "linux-host", {},
        "A real kernel whose hosts push back, as Shoal's: Linux 6.18, CUBIC", true);
  table(data / "linux", "linux", {},
        "A real kernel, uplinks with drop-tail queues: Linux 6.18, CUBIC");
  table(data / "validation", "linux", {}, "A real kernel, further patterns: Linux 6.18, CUBIC");
  table(
      data / "calibration", "linux", {},
      "A real kernel, the calibration patterns that this could be measured on: Linux 6.18, CUBIC");
  table(
      data / "linux", "linux-reno",
      [] {
        shoal::netem::tcp_options o;
        o.control = shoal::netem::congestion_control::reno;
        return o;
      }(),
      "A real kernel: Linux 6.18, Reno");
  auto cubic = shoal::netem::ns3_newreno();
  cubic.control = shoal::netem::congestion_control::cubic;
  cubic.slow_start_growth = 2;
  table(data / "calibration", "ns3-cubic", cubic,
        "ns-3 3.37, CUBIC (nothing was calibrated on it)");
  table(data / "validation", "ns3-cubic", cubic, "Further patterns: ns-3, CUBIC");
  probes(data / "probes");
}
