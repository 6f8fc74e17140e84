#include "scenarios/observe/metrics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

using namespace shoal;
using namespace shoal::scenarios;

TEST_CASE("every metric has a column of its own, a unit and a sentence of help") {
  std::set<std::string_view> columns;
  for (const metric_definition& d : metric_definitions()) {
    CHECK((d.column.empty() || columns.insert(d.column).second));
    CHECK(!d.unit.empty());
    CHECK(d.help.ends_with('.'));
    CHECK(d.name.starts_with("shoal_"));
    CHECK(d.label.empty() == d.value.empty());
    CHECK(d.name.ends_with("_total") == (d.kind == metric_kind::counter));
  }
}

TEST_CASE("the page of metrics has a row for each of them") {
  const std::string page = metrics_page();
  for (const metric_definition& d : metric_definitions()) {
    if (!d.column.empty())
      CHECK(page.find("| `" + std::string(d.column) + "` |") != std::string::npos);
    CHECK(page.find("`" + std::string(d.name)) != std::string::npos);
  }
  CHECK(page.find("`shoal_rounds_total{outcome=\"split\"}`") != std::string::npos);
  CHECK(page.find("nan") == std::string::npos);
}

TEST_CASE("docs/metrics.md is the page that the definitions give") {
  if (std::getenv("SHOAL_UPDATE_EXPECTED") != nullptr)
    std::ofstream("docs/metrics.md", std::ios::binary) << metrics_page();
  std::ifstream in("docs/metrics.md", std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  CHECK_MESSAGE(page == metrics_page(),
                "set SHOAL_UPDATE_EXPECTED=1 and run this test to write docs/metrics.md");
}

TEST_CASE("rows have as many fields as the header, and unknown values are empty") {
  metrics m;
  const std::string header = metrics::csv_header();
  CHECK(header.starts_with(
      "time,epoch,samples,samples_per_second,loss_train,loss_held_out,peers_alive,"));
  m.set(metric::virtual_time, 1.5);
  m.set(metric::epoch, 3);
  m.set(metric::samples, 12345678901);
  m.set(metric::loss_train, 0.1);
  m.set(metric::loss_held_out, std::nan(""));
  const std::string row = m.csv_row();
  CHECK(row.starts_with("1.500000000,3,12345678901,,0.1,,,"));
  CHECK(std::count(row.begin(), row.end(), ',') == std::count(header.begin(), header.end(), ','));
  CHECK(row.find("nan") == std::string::npos);
  m.set(metric::loss_train, std::nullopt);
  CHECK(!m.get(metric::loss_train).has_value());
}

TEST_CASE("the Prometheus exposition holds the same values") {
  metrics m;
  m.set(metric::rounds_partial, 2);
  m.set(metric::rounds_partial, 5);
  m.set(metric::peers_alive, 16);
  const std::string text = m.exposition();
  CHECK(text.find("shoal_rounds_total{outcome=\"partial\"} 5") != std::string::npos);
  CHECK(text.find("shoal_peers{is=\"alive\"} 16") != std::string::npos);
  CHECK(text.find("# TYPE shoal_rounds_total counter") != std::string::npos);
  CHECK(text.find("# HELP shoal_epoch Highest epoch") != std::string::npos);
}

TEST_CASE("rounds are counted by reason from the beginning, and their times fall into buckets") {
  metrics m;
  CHECK(m.exposition().find("shoal_round_reasons_total{reason=\"sender_lost\"} 0\n") !=
        std::string::npos);
  CHECK(m.exposition().find("reason=\"none\"") == std::string::npos);
  m.set(metric_by_label::rounds, "sender_lost", 3);
  m.set(metric_by_label::rounds, "sender_lost",
        2); // one turned out otherwise: counters do not fall
  m.add_round(0.3);
  m.add_round(7);
  const std::string text = m.exposition();
  CHECK(text.find("shoal_round_reasons_total{reason=\"sender_lost\"} 3\n") != std::string::npos);
  CHECK(text.find("shoal_round_seconds_bucket{le=\"0.5\"} 1\n") != std::string::npos);
  CHECK(text.find("shoal_round_seconds_bucket{le=\"10\"} 2\n") != std::string::npos);
  CHECK(text.find("shoal_round_seconds_count 2\n") != std::string::npos);
}

TEST_CASE(
    "what a world does not have has no series, and what it has appears with its first value") {
  metrics m;
  for (const char* name :
       {"shoal_received_bytes_total", "shoal_links_open", "shoal_links_lost_total",
        "shoal_links_held_back_total", "shoal_bulk_window_bytes", "shoal_handshakes_refused_total",
        "shoal_frames_refused_total"})
    CHECK(m.exposition().find(name) == std::string::npos);
  wire_counts counts;
  counts.received_bytes = {1, 2, 3, 4};
  counts.links_open = 7;
  counts.handshakes_refused = {{"expired", 2}};
  m.set(counts);
  counts.links_open = 6;
  m.set(counts);
  const std::string text = m.exposition();
  CHECK(text.find("shoal_received_bytes_total{kind=\"averaging\"} 2\n") != std::string::npos);
  CHECK(text.find("shoal_links_open 6\n") != std::string::npos);
  CHECK(text.find("shoal_links_lost_total 0\n") != std::string::npos);
  CHECK(text.find("shoal_handshakes_refused_total{reason=\"expired\"} 2\n") != std::string::npos);
  CHECK(text.find("shoal_frames_refused_total") == std::string::npos);
  CHECK(m.csv_row().find('7') == std::string::npos); // these metrics have no columns
}
