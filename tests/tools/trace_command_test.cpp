// `shoal trace` as a user meets it, and its pictures.
#include "netem/trace_formats.hpp"
#include "tools/trace_picture.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

const std::string folder = "tests/scenarios/traces/";

struct outcome {
  int status = -1;
  std::string out, err;
};

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::temp_directory_path() /
         fmt::format("shoal-trace-{}-{}", ::getpid(), name);
}

outcome program(const std::string& arguments) {
  const auto out = scratch("out"), err = scratch("err");
  const int status = std::system(fmt::format("'{}' {} >'{}' 2>'{}' </dev/null", SHOAL_PROGRAM,
                                             arguments, out.string(), err.string())
                                     .c_str());
  outcome all{WIFEXITED(status) ? WEXITSTATUS(status) : 128, slurp(out), slurp(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return all;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("trace info says what a trace holds") {
  const auto text = program("trace info " + folder + "events.jsonl");
  CHECK(text.status == 0);
  CHECK(has(text.out, "events.jsonl (events)\n"));
  CHECK(has(text.out, "8, of which 3 ended: 4.091 for each node-hour"));
  CHECK(has(text.out, "3 to 5, 4.40 in the mean; 0.7 node-hours, 73.3 %"));
  CHECK(has(text.out, "\n n-4 ····"));
  const auto json = program("trace info --json " + folder + "counts.csv");
  CHECK(json.status == 0);
  CHECK(has(json.out, "\"format\": \"counts\""));
  CHECK(has(json.out, "\"endings\": 8"));
  CHECK_FALSE(has(program("trace info --no-picture " + folder + "counts.csv").out, "█"));
}

TEST_CASE("trace info draws the sessions") {
  const auto svg = scratch("picture.svg");
  CHECK(program("trace info " + folder + "events.jsonl --svg " + svg.string()).status == 0);
  const std::string text = slurp(svg);
  std::filesystem::remove(svg);
  CHECK(text.starts_with("<svg "));
  CHECK(text.ends_with("</svg>\n"));
  std::size_t bars = 0;
  for (std::size_t at = text.find("<rect x="); at != std::string::npos;
       at = text.find("<rect x=", at + 1))
    ++bars;
  CHECK(bars == 8); // one for each session
  const auto refused = program("trace info " + folder + "events.jsonl --svg /nowhere/x.svg");
  CHECK(refused.status == 3);
  CHECK(has(refused.err, "'/nowhere/x.svg' cannot be written: No such file or directory"));
}

TEST_CASE("trace reads standard input and pipes") {
  for (const char* from : {"-", "/dev/stdin"}) {
    const auto out = scratch("out");
    CHECK(std::system(fmt::format("'{0}' trace convert {1}events.jsonl --to csv | '{0}' trace info "
                                  "--no-picture {2} >'{3}'",
                                  SHOAL_PROGRAM, folder, from, out.string())
                          .c_str()) == 0);
    const auto text = slurp(out);
    CHECK(text.starts_with(fmt::format("{} (csv)\n", from)));
    CHECK(has(text, "8, of which 3 ended"));
    std::filesystem::remove(out);
  }
}

TEST_CASE("trace convert writes the same sessions in another format") {
  const auto csv = program("trace convert " + folder + "event_trace.tab --to csv");
  CHECK(csv.status == 0);
  CHECK(csv.out == "peer,start,end\nlab1,0s,300.5s\nlab1,6min,forever\nlab2,1min,9min\nnode-3,30s,"
                   "10min\nlab4,10s,100s\n");
  const auto file = scratch("counts.csv");
  CHECK(
      program("trace convert " + folder + "events.jsonl --to counts -o " + file.string()).status ==
      0);
  CHECK(slurp(file) == "s,count\n0,4\n120,3\n180,5\n300,3\n360,5\n600,5\n");
  std::filesystem::remove(file);
  const auto profile = program("trace convert " + folder + "profiles/host-b.trace --to simgrid");
  CHECK(profile.out == "LOOPAFTER 30\n0 0\n30 1\n150 0\n");
}

TEST_CASE("wrong input to trace is answered with what is wrong and where") {
  const auto order = program("trace info tests/scenarios/invalid/trace_counts.csv");
  CHECK(order.status == 1);
  CHECK(order.out.empty());
  CHECK(has(order.err, "trace_counts.csv:3:1: error: out of order: the line before this one is at "
                       "1min\n50,2\n^~\n"));
  CHECK(has(order.err, "trace_counts.csv:4:4: error: expected a number of nodes, not 'lots'\n"));
  CHECK(has(order.err, "note: it was read as 'counts'; --format says otherwise\n"));
  CHECK(has(program("trace info /nowhere").err,
            "/nowhere: error: cannot be read: No such file or directory"));
  const auto bench = program("bench rebalancing " + folder + "counts.csv /nowhere");
  CHECK(bench.status == 1);
  CHECK(bench.out.empty());
  CHECK(bench.err == "/nowhere: error: cannot be read: No such file or directory\n");
  CHECK(has(program("trace info tests").err, "tests: error: is a directory, expected a trace"));
  CHECK(program("trace info tests").status == 1);
  const auto format = program("trace convert " + folder + "counts.csv --to cvs");
  CHECK(format.status == 2);
  CHECK(format.err == "error: --to: unknown format 'cvs'; did you mean 'csv'?\n");
  CHECK(has(program("trace convert " + folder + "counts.csv --to simgrid").err,
            "describes one host, and the trace has 6 peers"));
  const auto events = scratch("names.jsonl");
  std::ofstream(events) << "[0, \"add\", {\"nodes\": [\"a,b\"]}]\n";
  CHECK(program("trace convert " + events.string() + " --to csv").err ==
        "error: csv: the name 'a,b' does not fit into it: rename the peer, or write events\n");
  CHECK(program("trace convert " + events.string() + " --to fta").status == 0);
  std::filesystem::remove(events);
  const auto command = program("trace inf x");
  CHECK(command.status == 2);
  CHECK(has(command.err, "unknown command 'inf'; did you mean 'info'?"));
  CHECK(program("trace").status == 2);
}

TEST_CASE("pictures of large traces show some of the peers") {
  shoal::netem::trace many;
  for (int i = 0; i < 1000; ++i)
    many.add("p-" + std::to_string(i), {std::chrono::seconds(i), std::chrono::seconds(i + 10)});
  many.seen_until(std::chrono::seconds(1010));
  const auto text = shoal::tools::text_picture(many, 60);
  CHECK(has(text, "48 of 1000 peers"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 6 + 48 + 2);
  CHECK(has(shoal::tools::svg_picture(many, "a <b>"), "400 of 1000 peers"));
  CHECK(has(shoal::tools::svg_picture(many, "a <b>"), "a &lt;b&gt;"));
  CHECK(shoal::tools::text_picture({}, 60).empty());
}
