#include "kernels/base/rng.hpp"
#include "netem/trace.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

trace_result read(const std::string& text,
                  const std::function<bool(std::string_view)>& known = {}) {
  std::istringstream in(text);
  return read_trace(in, known);
}

/// Each problem as 'line:column+length: message'.
std::string problems(const trace_result& of) {
  std::string out;
  for (const auto& what : of.problems)
    out += std::to_string(what.line) + ":" + std::to_string(what.column) + "+" +
           std::to_string(what.length) + ": " + what.message + "\n";
  return out;
}

std::string problems_of(const std::string& rows) {
  return problems(read("peer,start,end\n" + rows));
}

} // namespace

TEST_CASE("a trace gives each peer its sessions, in seconds or with units") {
  const auto result = read("\xef\xbb\xbf# who was there\r\n"
                           "peer, start ,end\r\n"
                           "\n"
                           "b-0,0,90\n"
                           "a-0, 1.5 ,500s\t# a comment\n"
                           "   # another\n"
                           "b-0,90,2h\n"
                           "a-0,10min,15 min"); // the last line has no end
  CHECK(problems(result) == "");
  REQUIRE(result.value.peers().size() == 2);
  CHECK(result.value.peers()[0].name == "b-0");
  CHECK(*result.value.sessions_of("b-0") == std::vector<session>{{0s, 90s}, {90s, 2h}});
  CHECK(*result.value.sessions_of("a-0") == std::vector<session>{{1500ms, 500s}, {600s, 900s}});
  CHECK(result.value.sessions_of("c-0")->empty());
}

TEST_CASE("each fault in a trace is reported with its place") {
  CHECK(problems(read("")) == "1:1+1: empty: expected the header 'peer,start,end'\n");
  CHECK(problems(read("# nothing\n\n")) == "2:1+1: empty: expected the header 'peer,start,end'\n");
  CHECK(problems(read("a,0,1\nb,2\n")) == "1:1+5: expected the header 'peer,start,end'\n");
  CHECK(problems(read("peer,end,start\n")) == "1:1+14: expected the header 'peer,start,end'\n");
  CHECK(problems_of("") == "1:1+1: no sessions: no host would ever start\n");
  CHECK(problems_of("a,0,10\na,5,20\n") ==
        "3:3+1: overlaps the session of 'a' before this one, which ends at 10s\n");
  CHECK(problems_of("a,7,10\nb,0,1\na,0,3\n") ==
        "4:3+1: out of order: the session of 'a' before this one starts at 7s\n");
  CHECK(problems_of("a,10,5\n") == "2:6+1: the session ends at 5s, before it starts at 10s\n");
  CHECK(problems_of("a,10,10s\n") == "2:6+3: the session starts and ends at 10s\n");
  CHECK(problems_of("a,0\n") == "2:1+3: 2 columns, expected the 3 of 'peer,start,end'\n");
  CHECK(problems_of("a\n") == "2:1+1: 1 column, expected the 3 of 'peer,start,end'\n");
  CHECK(problems_of("a,1,000,2\n") == "2:1+9: 4 columns, expected the 3 of 'peer,start,end'\n");
  CHECK(problems_of(",0,1\n") == "2:1+1: the peer is missing\n");
  CHECK(problems_of("a,, \n") == "2:3+1: the start is missing\n2:4+1: the end is missing\n");
  CHECK(problems_of("a,now,1\n") ==
        "2:3+3: start: 'now' is not a duration: write a number and a unit, such as 80ms or 2h\n");
  CHECK(problems_of("a,-5,1\n") == "2:3+2: start: '-5' is negative: a duration is 0 or more\n");
  CHECK(problems_of("a,0,1.2.3\n") ==
        "2:5+5: end: '1.2.3s' is not a duration: write a number and a unit, such as 80ms or 2h\n");
  CHECK(problems_of("a,0," + std::string(2000, '1') + "\n") ==
        "2:1+1001: a line of more than 1000 bytes\n");
}

TEST_CASE("all faults are reported at once and the valid rows between them still count") {
  CHECK(problems_of("a,0,10\na,x,1\na,5,6\nb,3,2\na,8,9\n") ==
        "3:3+1: start: 'x' is not a duration: write a number and a unit, such as 80ms or 2h\n"
        "4:3+1: overlaps the session of 'a' before this one, which ends at 10s\n"
        "5:5+1: the session ends at 2s, before it starts at 3s\n"
        "6:3+1: overlaps the session of 'a' before this one, which ends at 10s\n");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "a,1\n";
  CHECK(read("peer,start,end\n" + many).problems.size() == most_trace_problems);
}

TEST_CASE("a peer that does not exist is reported once, by name") {
  const auto result = read("peer,start,end\nb,0,1\na,0,1\nb,2,3\nc\x1b,0,1\n",
                           [](std::string_view name) { return name == "a"; });
  CHECK(problems(result) == "2:1+1: no host is called 'b'\n5:1+2: no host is called 'c?'\n");
  CHECK(result.problems[0].unknown_peer == "b");
  CHECK(result.problems[0].source_line == "b,0,1");
}

TEST_CASE("loading names the file, the line and the column of the first problem") {
  const auto path = (std::filesystem::temp_directory_path() / "shoal_trace_test.csv").string();
  std::ofstream(path) << "peer,start,end\na,0,10\na,5,20\n";
  CHECK(load_trace(path).error() ==
        path + ":3:3: error: overlaps the session of 'a' before this one, which ends at 10s");
  std::remove(path.c_str());
  CHECK(load_trace(path).error() == path + ": error: cannot be read: No such file or directory");
  CHECK(load_trace("tests").error() == "tests:1:1: error: cannot be read");
}

TEST_CASE("a written trace reads back as the same trace") {
  trace made;
  rng draw = stream(4, "trace");
  for (int peer = 0; peer < 20; ++peer) {
    auto source =
        session_source::drawn(4, "p-" + std::to_string(peer), {lifetime_kind::weibull, 3min, 0.7},
                              {lifetime_kind::exponential, 1min, 1});
    for (std::uint64_t i = 0; i <= draw.below(9); ++i)
      made.add("p-" + std::to_string(peer), *source.next());
  }
  std::stringstream text;
  write_trace(text, made);
  const auto again = read_trace(text);
  CHECK(problems(again) == "");
  CHECK(again.value == made);
  made.add("p-0", {24h * 1000, 24h * 1001});
  CHECK_FALSE(again.value == made);
}

TEST_CASE("a million rows are read") {
  std::string text = "peer,start,end\n";
  for (int i = 0; i < 1'000'000; ++i)
    text += "p-" + std::to_string(i % 1000) + "," + std::to_string(10 * (i / 1000)) + "," +
            std::to_string(10 * (i / 1000) + 9) + "\n";
  const auto result = read(text);
  CHECK(problems(result) == "");
  CHECK(result.value.peers().size() == 1000);
  CHECK(result.value.sessions_of("p-999")->size() == 1000);
  CHECK(result.value.sessions_of("p-999")->back() == session{9990s, 9999s});
}

TEST_CASE("reading ends for any bytes in a trace") {
  const std::string good = "peer,start,end\na-0,0,90\nb-1,1.5,500ms # x\na-0,90s,2h\n";
  for (std::uint64_t i = 0; i < 3000; ++i) {
    rng draw = stream(6, "trace", i);
    std::string text = good;
    for (std::uint64_t edits = 1 + draw.below(5); edits > 0; --edits) {
      const std::size_t at = draw.below(text.size());
      if (draw.below(3) == 0)
        text.erase(at, draw.below(6));
      else
        text[at] = static_cast<char>(draw.below(256));
      if (text.empty()) text = ",";
    }
    const auto result = read(text);
    for (const auto& what : result.problems) {
      REQUIRE_FALSE(what.message.empty());
      REQUIRE(what.column >= 1);
    }
    for (const auto& peer : result.value.peers()) REQUIRE_FALSE(peer.sessions->empty());
  }
}
