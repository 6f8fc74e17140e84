#include "scenarios/compare/run_comparison.hpp"
#include "tests/scenarios/compare/helpers.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

std::string round_line(double begin, double end, std::uint64_t epoch, int samples,
                       const std::string& outcome = "ok") {
  return fmt::format(
      R"({{"time_ns":{:.0f},"what":"round","epoch":{},"group":"{:032x}","members":2,"outcome":"{}","reason":"none","started_ns":{:.0f},"first_of_two":false,"samples":{}}})",
      end * 1e9, epoch, epoch + 1, outcome, begin * 1e9, samples);
}

summary totals(double mean_seconds, double loss, std::uint64_t bytes) {
  summary out;
  out.scenario = "made";
  out.seed = 1;
  out.world = "sim";
  out.virtual_seconds = 40;
  out.epochs = 3;
  out.samples = 300;
  out.loss.final = loss;
  out.rounds = {3, 0, 0, 1, {{"sender_lost", 1}}, mean_seconds};
  out.bytes_sent = {bytes / 4, bytes / 2, 0, bytes / 4};
  out.peers = {4, 0, 4};
  return out;
}

/// A whole run of three rounds, each `seconds` long and 10 s after the one before.
void make_whole(const std::filesystem::path& path, double seconds, double loss, std::uint64_t bytes,
                const std::string& more = "") {
  std::vector<std::string> lines;
  std::string epochs = "epoch,reached_s,samples,loss_train,loss_held_out\n";
  for (int i = 0; i < 3; ++i) {
    lines.push_back(round_line(10 * i, 10 * i + seconds, i, 100));
    epochs += fmt::format("{},{},100,{},{}\n", i, 10.0 * i, loss + 3 - i,
                          i == 2 ? fmt::format("{}", loss) : "");
  }
  make_run(path, lines, run_yaml(more), to_json(totals(seconds, loss, bytes)));
  write(path / "epochs.csv", epochs);
}

const compared_figure& figure(const run_comparison& of, const std::string& key) {
  for (const compared_figure& one : of.figures)
    if (one.key == key) return one;
  FAIL("no such figure: " << key);
  return of.figures.front();
}

run_comparison compared(const std::filesystem::path& here,
                        std::vector<std::string> arguments = {}) {
  const auto allowed = tolerances::parse(arguments);
  REQUIRE(allowed.ok());
  auto out = compare_runs(here / "predicted", here / "actual", *allowed);
  REQUIRE_MESSAGE(out.ok(), out.error());
  return std::move(*out);
}

} // namespace

TEST_CASE("a judged figure is within its tolerance or beyond it, and the other figures are shown") {
  scratch temp;
  make_whole(temp.path / "predicted", 2, 1.0, 4000);
  make_whole(temp.path / "actual", 2.1, 1.02, 4400);
  const auto out = compared(temp.path);
  CHECK(out.within());
  CHECK(*figure(out, "round").error() == doctest::Approx(0.05));
  CHECK(*figure(out, "loss").error() == doctest::Approx(0.02));
  CHECK(*figure(out, "bytes").error() == doctest::Approx(0.1)); // exactly what is allowed
  CHECK(*figure(out, "rate").predicted ==
        doctest::Approx(10)); // 200 samples in the 20 s between first and last end
  CHECK(*figure(out, "median").actual == doctest::Approx(2.1));
  CHECK(*figure(out, "steps").actual == doctest::Approx(10));
  CHECK(!figure(out, "median").judged());
  CHECK(figure(out, "reason.sender_lost").predicted == 1.0);

  CHECK(!compared(temp.path, {"4%"}).within());
  CHECK(!compared(temp.path, {"loss=1%"}).within());
  CHECK(compared(temp.path, {"1%", "loss=2.1%", "round=6%", "bytes=off", "rate=0"}).within());
  CHECK(compared(temp.path, {"loss=2.1%", "round=6%", "bytes=off", "1%"})
            .within()); // a tolerance for one figure wins
  CHECK(figure(compared(temp.path, {"epochs=0"}), "epochs").judged());

  REQUIRE(out.losses.size() == 2);
  CHECK(out.losses[0].name == "train");
  CHECK(out.losses[0].points.size() == 3);
  CHECK(out.losses[1].points.size() == 1);
  CHECK(out.losses[1].largest().epoch == 2);
}

TEST_CASE("a tolerance that is none says why") {
  CHECK(tolerances::parse(std::vector<std::string>{"lose=3%"}).error() ==
        "unknown figure 'lose'; did you mean 'loss'?");
  CHECK(
      tolerances::parse(std::vector<std::string>{"zzzzzz=3%"}).error().find("round, median, p90") !=
      std::string::npos);
  for (const char* wrong : {"much", "loss=", "loss=-1%", "off", "", "="})
    CHECK(!tolerances::parse(std::vector<std::string>{wrong}).ok());
}

TEST_CASE(
    "a figure that only one run has is beyond any tolerance, one that neither has is not judged") {
  scratch temp;
  make_whole(temp.path / "predicted", 2, 1.0, 4000);
  make_whole(temp.path / "actual", 2, 1.0, 4000);
  auto lacks = totals(2, 1.0, 4000);
  lacks.loss.final.reset();
  write(temp.path / "actual/summary.json", to_json(lacks));
  auto out = compared(temp.path);
  CHECK(!out.within());
  CHECK(!figure(out, "loss").within());
  write(temp.path / "predicted/summary.json", to_json(lacks));
  out = compared(temp.path);
  CHECK(out.within());
  CHECK(!figure(out, "loss").judged());
}

TEST_CASE("runs of different scenarios are not compared unless that is wanted, and the first "
          "difference is named") {
  scratch temp;
  make_whole(temp.path / "predicted", 2, 1.0, 4000,
             "averaging: {group_size: 8}\nworld: sim\ndata: {files: [a.txt]}\n");
  make_whole(temp.path / "actual", 2, 1.0, 4000,
             "averaging: {group_size: 9}\nworld: emulate\ndata: {files: [b.txt]}\n");
  const auto refused = compare_runs(temp.path / "predicted", temp.path / "actual");
  REQUIRE(!refused.ok());
  CHECK(refused.error().find("averaging.group_size is 8 and 9; --force") != std::string::npos);
  const auto forced = compare_runs(temp.path / "predicted", temp.path / "actual", {}, true);
  REQUIRE(forced.ok());
  CHECK(forced->notes.front() == "the scenarios differ: averaging.group_size is 8 and 9");
  make_whole(temp.path / "actual", 2, 1.0, 4000,
             "averaging: {group_size: 8}\nworld: emulate\ndata: {files: [b.txt]}\n");
  CHECK(compare_runs(temp.path / "predicted", temp.path / "actual").ok());
}

TEST_CASE("where there is no run, or a damaged one, the message names it") {
  scratch temp;
  make_whole(temp.path / "predicted", 2, 1.0, 4000);
  const auto error = [&](const char* actual) {
    const auto out = compare_runs(temp.path / "predicted", temp.path / actual);
    return out.ok() ? std::string("fine") : out.error();
  };
  CHECK(error("none").ends_with("none' is no directory"));
  std::filesystem::create_directories(temp.path / "empty/inside");
  CHECK(error("empty").find("there is no run in") != std::string::npos);
  make_whole(temp.path / "two/a", 2, 1.0, 4000);
  make_whole(temp.path / "two/b", 2, 1.0, 4000);
  CHECK(error("two").find("is a whole run, not what a node of a cluster wrote") !=
        std::string::npos);
  make_whole(temp.path / "damaged", 2, 1.0, 4000);
  write(temp.path / "damaged/summary.json", "{");
  CHECK(error("damaged").find("summary.json'") != std::string::npos);
  make_whole(temp.path / "cut", 2, 1.0, 4000);
  write(temp.path / "cut/epochs.csv", "epoch,reached_s,samples,loss_train,loss_held_out\n1,2\n");
  CHECK(error("cut").find("line 2 is no row of epochs.csv") != std::string::npos);
  make_whole(temp.path / "log", 2, 1.0, 4000);
  write_log(temp.path / "log/events.jsonl.zst", {R"({"time_ns":1,"what":"round"})"});
  CHECK(error("log").find("events.jsonl.zst': line 1: ") != std::string::npos);
}

TEST_CASE("nodes of one cluster are of one scenario, and one without a run.yaml is left out with a "
          "note") {
  scratch temp;
  const std::string made_by = "x-run: {shoal: 1.0, node: lab-1, started_utc_ns: 1000}\n";
  make_run(temp.path / "nodes/lab-1", {}, run_yaml(made_by), to_json(totals(2, 1.0, 400)));
  make_run(temp.path / "nodes/lab-2", {}, run_yaml("training: {target_batch: 7}\n" + made_by),
           to_json(totals(2, 1.0, 400)));
  const auto refused = read_run_record(temp.path / "nodes");
  REQUIRE(!refused.ok());
  CHECK(refused.error().find("lab-2' are not of one run: only one has training.target_batch: 7") !=
        std::string::npos);
  std::filesystem::remove(temp.path / "nodes/lab-2/run.yaml");
  const auto read = read_run_record(temp.path / "nodes");
  REQUIRE_MESSAGE(read.ok(), read.error());
  REQUIRE(read->notes.size() == 1);
  CHECK(read->notes[0].find("lab-2' is left out: it has no run.yaml") != std::string::npos);
  CHECK(read->bytes.averaging == 200);
  CHECK(read->directories == 1);
  write(temp.path / "nodes/lab-1/run.yaml", run_yaml("x-run: {node: lab-1}\n"));
  CHECK(read_run_record(temp.path / "nodes").error().find("does not say when it began") !=
        std::string::npos);
}

TEST_CASE("a node that left in the middle of a round delays no other node, and a round of two "
          "clocks has one duration") {
  const auto line = [](const char* what, double at, int member, const std::string& more) {
    return fmt::format(
        R"({{"time_ns":{:.0f},"host":"h","what":"{}","epoch":0,"group":"{:032x}","member":{},"members":2,{}}})",
        at * 1e9, what, 7, member, more);
  };
  const std::string brings = R"("weight":3,"samples":3,"takes":true,"first_of_two":false)";
  const std::string ends =
      R"("outcome":"partial","reason":"sender_lost","parts":1,"parts_incomplete":1,"senders":[1],"started_ns":)";
  for (const bool killed : {false, true}) {
    INFO(killed);
    scratch temp;
    auto left = totals(2, 1.0, 400);
    left.peers = {1, 1, 0};
    left.virtual_seconds = 3;
    // This host began a second earlier, so the round began at 2 s by its clock and at 1 s by the
    // other's.
    make_run(temp.path / "a", {line("contributed", 2, 0, brings)},
             run_yaml("x-run: {node: a, started_utc_ns: 5000000000}\n"), to_json(left));
    if (killed) std::filesystem::remove(temp.path / "a/summary.json");
    auto stayed = totals(2, 1.0, 400);
    stayed.peers = {1, 0, 1};
    make_run(temp.path / "b",
             {line("contributed", 1.5, 1, brings), line("round_ended", 4, 1, ends + "1000000000")},
             run_yaml("x-run: {node: b, started_utc_ns: 6000000000}\n"), to_json(stayed));
    const auto read = read_run_record(temp.path);
    REQUIRE_MESSAGE(read.ok(), read.error());
    REQUIRE(read->all_rounds.size() == 1);
    CHECK(read->rounds.partial == 1);
    CHECK(read->rounds.by_reason.at("sender_lost") == 1);
    CHECK(read->all_rounds[0].started == doctest::Approx(2));
    CHECK(read->all_rounds[0].ended == doctest::Approx(5));
    CHECK(read->samples == 3); // the samples of member 1 alone
    CHECK(read->peers.left ==
          (killed ? 0 : 1)); // a killed one without a row of metrics said nothing of its peers
    CHECK(read->notes.size() == (killed ? 1 : 0));
  }
}

TEST_CASE("the table fits 80 columns, and a narrow terminal") {
  scratch temp;
  make_whole(temp.path / "predicted", 2, 1.0, 4000);
  make_whole(temp.path / "actual", 2.5, 1.0, 4000);
  auto out = compared(temp.path);
  out.predicted.path = "p";
  out.actual.path = "a";
  const std::string wide = to_text(out);
  CHECK(wide.starts_with(
      "predicted  p (made, seed 1, sim)\nactual     a (made, seed 1, sim)\n\n"
      "                           predicted      actual      error  allowed\n"
      "rounds\n"
      "  time, mean                     2 s       2.5 s    +25.0 %     10 %  beyond\n"));
  CHECK(
      wide.ends_with("within what is allowed: rate, loss, bytes\nbeyond what is allowed: round\n"));
  CHECK(wide.find('\033') == std::string::npos);
  CHECK(to_text(out, {80, true}).find("\033[31mbeyond") != std::string::npos);
  const std::string narrow = to_text(out, {50, false});
  for (const auto& [text, columns] : {std::pair(wide, 80u), std::pair(narrow, 50u)}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= columns, line);
  }
  CHECK(narrow.find("  time, mean\n") != std::string::npos);
}

TEST_CASE("the comparison as JSON has each figure, its error and whether it is within") {
  scratch temp;
  make_whole(temp.path / "predicted", 2, 1.0, 4000);
  make_whole(temp.path / "actual", 2.5, 1.0, 4000);
  const auto json = nlohmann::json::parse(to_json(compared(temp.path)));
  CHECK(json["within"] == false);
  CHECK(json["figures"][0]["key"] == "round");
  CHECK(json["figures"][0]["error"] == doctest::Approx(0.25));
  CHECK(json["figures"][0]["within"] == false);
  CHECK(json["figures"][1]["within"].is_null());
  CHECK(json["actual"]["round_seconds"]["p90"] == doctest::Approx(2.5));
  CHECK(json["losses"][0]["points"].size() == 3);
}
