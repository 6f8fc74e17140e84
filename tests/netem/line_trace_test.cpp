#include "netem/line_trace.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

line_trace_result read(const std::string& text) {
  std::istringstream in(text);
  return read_line_trace(in);
}

std::string problems(const std::string& text) {
  std::string out;
  for (const auto& p : read(text).problems)
    out += std::to_string(p.line) + ":" + std::to_string(p.column) + ": " + p.message + "\n";
  return out;
}

} // namespace

TEST_CASE("a line trace changes the given values at their times and keeps the others") {
  const auto made = read("time,up,down,delay,loss\r\n\n0,20Mbit,100Mbit,15ms,0%\n30.5,5Mbit,,,1.5% "
                         "# evening\n1min,,,200ms,0.25\n");
  CHECK(made.problems.empty());
  REQUIRE(made.changes.size() == 3);
  CHECK(made.changes[0] == line_change{0s, data_rate{20e6}, data_rate{100e6}, 15ms, 0.0});
  CHECK(made.changes[1] == line_change{30500ms, data_rate{5e6}, {}, {}, 0.015});
  CHECK(made.changes[2] == line_change{60s, {}, {}, 200ms, 0.25});
}

TEST_CASE("columns may be left out and may be in any order after the time") {
  const auto made = read("time,loss,up\n0,1%,1MB/s\n");
  REQUIRE(made.changes.size() == 1);
  CHECK(made.changes[0] == line_change{0s, data_rate{8e6}, {}, {}, 0.01});
}

TEST_CASE("faults of a line trace are reported with their places") {
  CHECK(problems("") == "1:1: empty: expected a header such as 'time,up,down,delay,loss'\n");
  CHECK(problems("up,time\n") == "1:1: the first column has to be 'time'\n");
  CHECK(problems("time\n0\n") == "1:1: no column besides 'time', so nothing changes\n");
  CHECK(problems("time,bandwith,up,up\n") ==
        "1:6: unknown column 'bandwith': there are time, up, down, delay and loss\n1:18: the "
        "column 'up' is there twice\n");
  CHECK(problems("time,up\n") == "1:1: no rows: nothing ever changes\n");
  CHECK(problems("time,up\n5,1Mbit\n5,2Mbit\n3,1Mbit,4\n2,0Mbit\nx,5Mbps\n") ==
        "3:1: out of order: the row before this one is at 5s\n"
        "4:1: 3 columns, expected the 2 of the header\n"
        "5:1: out of order: the row before this one is at 5s\n"
        "5:3: a rate is above 0; a 'blackhole' fault cuts a host off\n"
        "6:1: time: 'x' is not a duration: write a number and a unit, such as 80ms or 2h\n"
        "6:3: '5Mbps' is ambiguous: write 5Mbit (bits) or 0.625MB/s (bytes)\n");
  CHECK(problems("time,loss\n0,100%\n1,much\n") ==
        "2:3: a loss is at least 0 and below 100%\n3:3: expected a number or a percentage, not "
        "'much'\n");
}
