#include "netem/trace_formats.hpp"
#include "netem/trace_statistics.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

using sessions = std::vector<session>;
const std::string folder = "tests/scenarios/traces/";

trace_result read(const std::string& text, trace_options how = {}) {
  std::istringstream in(text);
  return read_trace_as(in, "host", how);
}

trace read_well(const std::string& text, trace_options how = {}) {
  auto out = read(text, std::move(how));
  for (const auto& what : out.problems)
    MESSAGE(what.line << ":" << what.column << ": " << what.message);
  REQUIRE(out.problems.empty());
  return std::move(out.value);
}

/// Each problem as 'line:column: message'.
std::string problems(const std::string& text, trace_options how = {}) {
  std::string out;
  for (const auto& what : read(text, std::move(how)).problems)
    out +=
        std::to_string(what.line) + ":" + std::to_string(what.column) + ": " + what.message + "\n";
  return out;
}

trace fixture(const std::string& name) {
  const std::string file = folder + name;
  auto out = load_traces({&file, 1}, {});
  REQUIRE_MESSAGE(out, (out ? "" : out.error()));
  return std::move(*out);
}

std::string counts_of(const trace& what) {
  std::string out;
  for (const auto& [when, live] : live_counts(what))
    out += to_string(when) + ":" + std::to_string(live) + " ";
  return out;
}

trace_options as(trace_format format) {
  return {format, "", 1, {}};
}

} // namespace

TEST_CASE("the format of a trace is detected from its text") {
  CHECK(detect_trace_format("# who\n\npeer,start,end\n") == trace_format::csv);
  CHECK(detect_trace_format("# event_id\tcomponent_id\n0\t0\t1\t1\tlab1\t1\t0\t5\t0\n") ==
        trace_format::fta);
  CHECK(detect_trace_format("PERIODICITY 12\r\n0 1\r\n") == trace_format::simgrid);
  CHECK(detect_trace_format("0.0 1.0\n") == trace_format::simgrid);
  CHECK(detect_trace_format("s,count\n0,4\n") == trace_format::counts);
  CHECK(detect_trace_format("0,4") == trace_format::counts);
  CHECK(detect_trace_format("[0, \"add\", {}]") == trace_format::events);
  CHECK(detect_trace_format("id,name,machine,incarnation,started_s,ended_s,reason\n") ==
        trace_format::peers);
  CHECK(detect_trace_format("") == trace_format::csv);
}

TEST_CASE("an event trace of the Failure Trace Archive gives each node its availability") {
  const trace found = fixture("event_trace.tab");
  REQUIRE(found.peers().size() == 4);
  CHECK(*found.sessions_of("lab1") ==
        sessions{{0s, 300500ms}, {6min, forever}}); // adjacent events make one session
  CHECK(*found.sessions_of("lab2") == sessions{{1min, 9min}});
  CHECK(*found.sessions_of("node-3") == sessions{{30s, 10min}});
  CHECK(*found.sessions_of("lab4") == sessions{{10s, 100s}});
  CHECK(found.end() == 10min);
}

TEST_CASE("faults in an event trace are reported with their places") {
  const auto fta = as(trace_format::fta);
  CHECK(problems("0\t0\t1\t1\ta\t1\t50\t60\t0\n1\t0\t1\t1\ta\t1\t20\t30\t0\n", fta) ==
        "2:13: out of order: the event of 'a' before this one starts at 50s\n");
  CHECK(problems("0\t0\t1\t1\ta\t1\t50\t60\t0\n1\t0\t1\t1\ta\t0\t55\t70\t0\n", fta) ==
        "2:13: overlaps the event of 'a' before this one, which ends at 1min\n");
  CHECK(problems("0\t0\t1\t1\ta\tup\t50\t40\t0\n", fta) ==
        "1:11: event_type: expected 1 (available) or 0 (unavailable), not 'up'\n"
        "1:17: the event ends at 40s, before it starts at 50s\n");
  CHECK(problems("0 0 1 1 a 1 50 60 0\n", fta)
            .starts_with("1:1: 1 columns between tabs, expected 9: event_id "));
  CHECK(problems("0\t0\t1\t1\ta\t0\t50\t60\t0\n", fta) ==
        "1:1: no sessions: no event has the type 1\n");
  CHECK(problems("", fta) == "1:1: empty: expected lines of tab-separated events\n");
}

TEST_CASE("a SimGrid profile gives the times of its host and repeats") {
  const trace a = fixture("profiles/host-a.trace");
  CHECK(*a.sessions_of("host-a") == sessions{{0s, 1min}, {2min, 3min}});
  CHECK(a.loop() == 3min);
  CHECK(*read_well("5 0\n9 0.5\n").sessions_of("host") == sessions{{0s, 5s}, {9s, forever}});
  CHECK(*read_well("LOOPAFTER 10\n5 1\n9 0\n").sessions_of("host") == sessions{{5s, 9s}});
  CHECK(problems("0 1\n9 0\n4 1\n") == "3:1: out of order: the line before this one is at 9s\n");
  CHECK(problems("0 up\n", as(trace_format::simgrid)) ==
        "1:3: expected a value of 0 (unavailable) or more, not 'up'\n");
  CHECK(problems("LOOPAFTER 9e9\n0 1\n").starts_with("1:11: the pause before the loop: "));
  CHECK(problems("LOOPAFTER 80000d\n0 1\n") == "2:1: the loop begins too late to be represented\n");
  CHECK(problems("LOOPAFTER\n0 1\n") == "1:1: expected 'time value', or 'LOOPAFTER seconds'\n");
}

TEST_CASE("a looped source joins a session at its end with one at its beginning") {
  const trace a = fixture("profiles/host-a.trace");
  auto source = session_source::replayed(a.sessions_of("host-a"), a.loop());
  CHECK(source.next() == session{0s, 1min});
  CHECK(source.next() == session{2min, 4min});
  CHECK(source.next() == session{5min, 7min});
  const trace always = fixture("profiles/host-c.trace");
  auto there = session_source::replayed(always.sessions_of("host-c"), always.loop());
  CHECK(there.next() == session{0s, forever});
}

TEST_CASE("node counts keep their number at every time for all seeds") {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const trace found =
        read_well("0,2\n0,4\n60,4\n60,6\n95,3\n150,5\n240.5,4\n240.5,6\n300,2\n420,6\n600,6\n",
                  {{}, "", seed, {}});
    CHECK(found.peers().size() == 6);
    CHECK(counts_of(found) == "0s:4 1min:6 95s:3 150s:5 240.5s:6 5min:2 7min:6 ");
    CHECK(statistics_of(found).endings == 8); // one node left at 240.5s although two came
    CHECK(found.end() == 10min);
  }
  CHECK(read_well("0,9\n5,4\n", {{}, "", 1, {}}) != read_well("0,9\n5,4\n", {{}, "", 2, {}}));
  CHECK(counts_of(read_well("ms,count\n0,1\n1500,2\n")) == "0s:1 1.5s:2 ");
  CHECK(counts_of(read_well("0,1\n1.5,2\n", {{}, "h", 1, {}})) == "0s:1 90min:2 ");
  // Nodes that come and go at the same time were not there.
  CHECK(counts_of(read_well("0,1\n5,3\n5,1\n9,0\n")) == "0s:1 9s:0 ");
}

TEST_CASE("nodes that end are chosen with equal probability and the longest away return first") {
  std::vector<int> lost(4, 0);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const trace found = read_well("0,4\n5,3\n", {{}, "", seed, {}});
    for (std::size_t i = 0; i < 4; ++i) lost[i] += found.peers()[i].sessions->front().end == 5s;
  }
  for (const int count : lost) CHECK(std::abs(count - 1000) < 110); // four deviations
  const trace found = read_well("0,3\n5,2\n6,1\n7,2\n");
  for (const auto& peer : found.peers())
    if (peer.sessions->front().end == 5s) CHECK(peer.sessions->back() == session{7s, forever});
}

TEST_CASE("faults in node counts are reported with their places") {
  CHECK(problems("0,4\n9,3\n5,2\n") == "3:1: out of order: the line before this one is at 9s\n");
  CHECK(problems("0,4\n9,many\n") == "2:3: expected a number of nodes, not 'many'\n");
  CHECK(problems("0,4\n9,-1\n") == "2:3: expected a number of nodes, not '-1'\n");
  CHECK(problems("0,4\n9\n") == "2:1: 1 column, expected the 2 of 'time,count'\n");
  CHECK(problems("0,0\n9,0\n") == "2:1: no sessions: no count is above 0\n");
}

TEST_CASE("an event log adds and removes nodes by name") {
  const trace found = fixture("events.jsonl");
  CHECK(*found.sessions_of("n-0") == sessions{{0s, 5min}, {6min, forever}});
  CHECK(*found.sessions_of("n-4") == sessions{{3min, 5min}});
  CHECK(counts_of(found) == "0s:4 2min:3 3min:5 5min:3 6min:5 ");
  CHECK(found.end() == 10min);
  CHECK(
      problems("[0, \"add\", {\"nodes\": [\"a\", \"b\"]}]\n[5, \"add\", {\"nodes\": [\"b\"]}]\n") ==
      "2:23: 'b' is added, but is there since 0s\n");
  CHECK(problems("[0, \"remove\", {\"nodes\": [\"a\"]}]\n") ==
        "1:26: 'a' is removed, but is not there\n");
  CHECK(problems("[9, \"add\", {\"nodes\": [\"a\"]}]\n[5, \"no-op\", {\"nodes\": []}]\n") ==
        "2:2: out of order: the line before this one is at 9ms\n");
  CHECK(problems("[9, \"add\"\n") == "1:10: this is not JSON\n");
  CHECK(problems("[\"soon\", \"add\", {\"nodes\": [\"a\"]}]\n") ==
        "1:1: time: expected a number\n");
  CHECK(problems("[1e300, \"add\", {\"nodes\": [\"a\"]}]\n") ==
        "1:1: time: '1e+300' is too long\n");
  CHECK(problems("[-5, \"add\", {\"nodes\": [\"a\"]}]\n") == "1:2: time: '-5' is negative\n");
  CHECK(problems(std::string(3'000'000, '[')) == "1:1: more than 64 levels\n");
  CHECK(*read_well("[1.5e3, \"add\", {\"nodes\": [\"a\"]}]\n").sessions_of("a") ==
        sessions{{1500ms, forever}});
  CHECK(problems("[9, \"swap\", {\"nodes\": [\"a\"]}]\n").starts_with("1:5: 'swap' with nodes"));
}

TEST_CASE("no session begins at the end of time in any format") {
  CHECK(problems("peer,start,end\nh,9223372036854775806ns,9223372036854775807ns\n") ==
        "2:25: end: '9223372036854775807ns' is too long\n");
  CHECK(problems("9223372036.854775807,3\n", as(trace_format::counts)) ==
        "1:1: time: '9223372036.854775807' is too long\n");
  CHECK(problems("0 0\n9223372036.854775807 1\n", as(trace_format::simgrid)) ==
        "2:1: time: '9223372036.854775807' is too long\n");
  CHECK(problems("[9000000000000, \"add\", {\"nodes\": [\"a\"], \"duration\": 8000000000000}]\n",
                 as(trace_format::events)) ==
        "1:41: duration: the node ends too late to be represented\n");
}

TEST_CASE("nodes of equal names are told apart") {
  const auto row = [](const char* id, const char* name, const char* times) {
    return "0\t0\t" + std::string(id) + "\t0\t" + name + "\t1\t" + times + "\t0\n";
  };
  const auto what =
      read_well(row("1", "a", "0\t50") + row("2", "a", "10\t20") + row("9", "a-1", "5\t30"),
                as(trace_format::fta));
  REQUIRE(what.peers().size() == 3);
  CHECK(what.peers()[0].name == "a-1-1");
  CHECK(what.peers()[1].name == "a-2");
  CHECK(what.peers()[2].name == "a-1-9");
  for (const auto& peer : what.peers()) CHECK(peer.sessions->size() == 1);
}

TEST_CASE("a name that is not UTF-8 can be written as an event") {
  std::ostringstream out;
  write_trace_as(out, read_well("peer,start,end\nh\xe4nsel,0s,5s\n"), trace_format::events);
  CHECK(out.str().find("nsel") != std::string::npos);
}

TEST_CASE("names that a format cannot hold are detected") {
  const auto name_that = [](const char* name, trace_format format) {
    trace what;
    what.add("plain"), what.add(name);
    const auto found = unwritable_name(what, format);
    return found ? std::string(*found) : std::string("none");
  };
  for (const char* name : {"a,b", "#1", " a", "a\t", "a\nb", ""})
    CHECK(name_that(name, trace_format::csv) == name);
  for (const char* name : {"a\tb", "#1", " a", "NULL", ""})
    CHECK(name_that(name, trace_format::fta) == name);
  CHECK(name_that("NULL", trace_format::csv) == "none");
  CHECK(name_that("a,b", trace_format::fta) == "none");
  CHECK(name_that("a\nb", trace_format::events) == "none");
}

TEST_CASE("a node of an event must have a name") {
  CHECK(
      problems("[0, \"add\", {\"nodes\": [\"a\", \"\"]}]\n[9, \"remove\", {\"nodes\": [\" \"]}]\n",
               as(trace_format::events)) ==
      "1:28: the name of a node is empty\n2:26: the name of a node is empty\n");
}

TEST_CASE("a short text of node counts cannot describe too many sessions") {
  std::string text;
  for (int i = 0; i < 11; ++i)
    text += std::to_string(2 * i) + ",400000\n" + std::to_string(2 * i + 1) + ",0\n";
  CHECK(problems(text, as(trace_format::counts)) == "22:4: more than 4000000 sessions\n");
}

TEST_CASE("the peers of an earlier run are a trace") {
  const trace found = fixture("peers.csv");
  CHECK(*found.sessions_of("home-0") == sessions{{0s, forever}});
  CHECK(*found.sessions_of("home-2") == sessions{{15250ms, 200s}, {260s, forever}});
  CHECK(problems(
            "id,name,machine,incarnation,started_s,ended_s,reason\n1,a,2,0,5,3,x\n1,,2,0,5,,\n") ==
        "2:11: the session ends at 3s, before it starts at 5s\n3:3: the name is missing\n");
}

TEST_CASE("a trace that is written in a format reads back as the same") {
  for (const char* name :
       {"sessions.csv", "event_trace.tab", "counts.csv", "events.jsonl", "peers.csv"}) {
    CAPTURE(name);
    const trace before = fixture(name);
    for (const trace_format format :
         {trace_format::csv, trace_format::fta, trace_format::events, trace_format::counts}) {
      CAPTURE(name_of(format));
      std::ostringstream out;
      write_trace_as(out, before, format);
      const trace after = read_well(out.str());
      CHECK(counts_of(after) == counts_of(before));
      if (format == trace_format::csv) CHECK(after == before);
    }
  }
  for (const char* name :
       {"profiles/host-a.trace", "profiles/host-b.trace", "profiles/host-c.trace"}) {
    const trace before = fixture(name);
    std::ostringstream out;
    write_trace_as(out, before, trace_format::simgrid);
    const trace after = read_well(out.str());
    CHECK(*after.peers()[0].sessions == *before.peers()[0].sessions);
    CHECK(after.loop() == before.loop());
  }
}

TEST_CASE("a window plays a part of a trace, faster or repeatedly") {
  const trace all = read_well("peer,start,end\na,0,10\na,20,30\nb,5,forever\nc,0,3\n");
  const trace later = windowed(all, {5s, 1, false});
  CHECK(*later.sessions_of("a") == sessions{{0s, 5s}, {15s, 25s}});
  CHECK(*later.sessions_of("b") == sessions{{0s, forever}});
  CHECK(later.sessions_of("c")->empty());
  CHECK(later.peers().size() == 3);
  CHECK(later.end() == 25s);
  const trace quick = windowed(all, {0s, 10, false});
  CHECK(*quick.sessions_of("a") == sessions{{0s, 1s}, {2s, 3s}});
  const trace round = windowed(all, {5s, 1, true});
  CHECK(round.loop() == 30s);
  // The end of the trace and its beginning touch.
  CHECK(*round.sessions_of("a") == sessions{{0s, 5s}, {15s, 30s}});
  CHECK(*round.sessions_of("b") == sessions{{0s, 25s}});
  CHECK(*round.sessions_of("c") == sessions{{25s, 28s}});
  CHECK(windowed(all, {}) == all);
}

TEST_CASE("several files are one trace unless they contradict each other") {
  const std::vector<std::string> two{folder + "events.jsonl", folder + "sessions.csv"};
  const auto both = load_traces(two, {});
  REQUIRE(both);
  CHECK(both->peers().size() == 12);
  const std::vector<std::string> twice{folder + "events.jsonl", folder + "events.jsonl"};
  CHECK_FALSE(load_traces(twice, {}));
  const std::vector<std::string> loops{folder + "profiles/host-a.trace",
                                       folder + "profiles/host-c.trace"};
  CHECK(load_traces(loops, {}));
  const std::vector<std::string> mixed{folder + "profiles/host-a.trace", folder + "events.jsonl"};
  CHECK_FALSE(load_traces(mixed, {}));
}

TEST_CASE("the statistics of a trace agree with its sessions") {
  const auto s =
      statistics_of(read_well("peer,start,end\na,0,1800\na,2700,3600\nb,1800,forever\n"));
  CHECK(s.peers == 2);
  CHECK(s.sessions == 3);
  CHECK(s.endings == 2);
  CHECK(s.node_hours == doctest::Approx(1.25));
  CHECK(s.availability == doctest::Approx(0.625));
  CHECK(s.endings_per_node_hour == doctest::Approx(1.6));
  CHECK(s.fewest == 1);
  CHECK(s.most == 2);
  CHECK(s.session_lengths == std::vector<double>{1800, 900});
  CHECK(s.gap_lengths == std::vector<double>{900});
}
