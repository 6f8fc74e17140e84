#include "scenarios/sweep/table.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

/// Two points with three seeds each; the last cell is not there.
struct swept {
  scratch_folder folder;
  sweep_plan plan;
  swept() {
    plan.scenario = "/s.yaml";
    plan.vary = {{"workload.kind", {"a|b", "c,d"}}};
    plan.seeds = {1, 2, 3};
    for (std::size_t cell = 0; cell < 5; ++cell) {
      summary run;
      run.virtual_seconds = 10;
      run.samples = 100 * (cell + 1);
      run.epochs = 7;
      run.bytes_sent.averaging = 1024 * 1024;
      const auto name = "cells/" + cell_name(plan, cell);
      std::filesystem::create_directories(folder.path / name);
      folder.write(name + "/summary.json", to_json(run));
    }
  }
};

} // namespace

TEST_CASE("a confidence interval is Student's") {
  const auto one = estimate_of({5});
  CHECK(one.mean == 5);
  CHECK(!one.half_width);
  // s = 1, t(0.975, 2) = 4.302653.
  const auto three = estimate_of({1, 2, 3});
  CHECK(three.n == 3);
  CHECK(three.mean == 2);
  CHECK(*three.half_width == doctest::Approx(4.3026527 / std::sqrt(3.0)));
  CHECK(three.least == 1);
  CHECK(three.most == 3);
  CHECK(*estimate_of({4, 4}).half_width == 0);
}

TEST_CASE("a table has the usual metrics that a run has, by point") {
  const swept t;
  const auto table = make_table(t.plan, t.folder.path);
  REQUIRE(table.ok());
  CHECK(table->metrics == std::vector<std::string>{"virtual_seconds", "epochs",
                                                   "samples_per_second", "rounds.ok",
                                                   "rounds.failed", "bytes_sent.total"});
  REQUIRE(table->rows.size() == 2);
  CHECK(table->rows[0].runs == 3);
  CHECK(table->rows[1].runs == 2);
  CHECK(table->rows[0].metrics[2]->mean == 20);
  CHECK(table->rows[1].metrics[2]->mean == 45);
  CHECK(table_markdown(t.plan, *table) ==
        "| workload.kind | runs | virtual_seconds | epochs | samples_per_second | rounds.ok | "
        "rounds.failed | bytes_sent.total |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|\n"
        "| a\\|b | 3 | 10 ± 0 | 7 ± 0 | 20 ± 25 | 0 ± 0 | 0 ± 0 | 1.0 MiB ± 0 B |\n"
        "| c,d | 2 | 10 ± 0 | 7 ± 0 | 45 ± 64 | 0 ± 0 | 0 ± 0 | 1.0 MiB ± 0 B |\n");
}

TEST_CASE("a table in CSV has every figure, and the cells have their runs") {
  swept t;
  t.plan.metrics = {"samples_per_second", "loss.final"};
  const auto table = make_table(t.plan, t.folder.path);
  REQUIRE(table.ok());
  CHECK(table_csv(t.plan, *table) ==
        "workload.kind,runs,samples_per_second,samples_per_second.ci95,samples_per_second.min,"
        "samples_per_second.max,loss.final,loss.final.ci95,loss.final.min,loss.final.max\n"
        "a|b,3,20,24.8413771,10,30,,,,\n"
        "\"c,d\",2,45,63.5310237,40,50,,,,\n");
  CHECK(cells_csv(t.plan, *table) ==
        "cell,workload.kind,seed,samples_per_second,loss.final\n"
        "0,a|b,1,10,\n1,a|b,2,20,\n2,a|b,3,30,\n3,\"c,d\",1,40,\n4,\"c,d\",2,50,\n");
  const auto json = nlohmann::json::parse(table_json(t.plan, *table));
  CHECK(json["points"][1]["values"][0] == "c,d");
  CHECK(json["points"][1]["metrics"]["samples_per_second"]["n"] == 2);
  CHECK(json["points"][1]["metrics"]["loss.final"].is_null());
}

TEST_CASE("a narrow terminal has the metrics below each other") {
  swept t;
  t.plan.metrics = {"epochs", "samples_per_second"};
  const auto table = make_table(t.plan, t.folder.path);
  REQUIRE(table.ok());
  CHECK(table_text(t.plan, *table, 200) == "workload.kind  runs  epochs  samples_per_second\n"
                                           "          a|b     3   7 ± 0             20 ± 25\n"
                                           "          c,d     2   7 ± 0             45 ± 64\n");
  CHECK(table_text(t.plan, *table, 40) == "workload.kind  runs  epochs\n"
                                          "          a|b     3   7 ± 0\n"
                                          "          c,d     2   7 ± 0\n"
                                          "\n"
                                          "workload.kind  runs  samples_per_second\n"
                                          "          a|b     3             20 ± 25\n"
                                          "          c,d     2             45 ± 64\n");
}

TEST_CASE("metrics are those of summary.json and two that follow from it") {
  for (const auto& name : sweep_metrics()) {
    INFO(name);
    CHECK(is_sweep_metric(name));
    summary full;
    full.virtual_seconds = 1;
    full.loss = {1, 1, 1, 1};
    full.rounds.mean_seconds = 1;
    CHECK(sweep_number(full, name).has_value());
  }
  CHECK(is_sweep_metric("rounds.by_reason.sender_lost"));
  CHECK(!is_sweep_metric("rounds.by_reason.sender_lots"));
  CHECK(!is_sweep_metric("loss"));
}

TEST_CASE("numbers of a table are short") {
  CHECK(metric_text("epochs", 12345) == "12345");
  CHECK(metric_text("loss.final", 2.184159) == "2.184");
  CHECK(metric_text("bytes_sent.total", 2.5 * 1024 * 1024) == "2.5 MiB");
  CHECK(estimate_text("epochs", std::nullopt) == "-");
  CHECK(estimate_text("loss.final", estimate{2, 2.5, 0.0123, 0, 0}) == "2.5 ± 0.012");
}
