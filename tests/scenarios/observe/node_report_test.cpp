#include "scenarios/observe/node_report.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace shoal::scenarios;

TEST_CASE("a node's report whose counts are none is refused") {
  node_report report;
  report.name = "lab-1";
  report.epoch = 7;
  report.rounds_by_outcome["ok"] = 3;
  const auto text = to_json(report);
  const auto read = node_report_from_json(text);
  REQUIRE(read.ok());
  CHECK(read->epoch == 7);
  CHECK(read->rounds_by_outcome.at("ok") == 3);
  for (const std::string field : {"\"epoch\": 7", "\"ok\": 3"})
    for (const std::string count : {"4e73", "-1", "7.5", "null", "\"7\"", "[7]"}) {
      CAPTURE(field);
      CAPTURE(count);
      auto changed = text;
      const auto at = changed.find(field);
      REQUIRE(at != std::string::npos);
      changed.replace(at + field.size() - 1, 1, count);
      CHECK_FALSE(node_report_from_json(changed).ok());
    }
}

TEST_CASE("a node's report has its bans, and a report of an earlier version has none") {
  node_report report;
  report.bans.push_back(
      {"00ff", "mallory", "two votes in one round", "2026-11-21T21:00:00Z", "vote ab"});
  const auto read = node_report_from_json(to_json(report));
  REQUIRE(read.ok());
  CHECK(*read == report);
  auto text = to_json(node_report{});
  const std::string none = "  \"bans\": [],\n";
  const auto at = text.find(none);
  REQUIRE(at != std::string::npos);
  text.erase(at, none.size());
  const auto old = node_report_from_json(text);
  REQUIRE(old.ok());
  CHECK(old->bans.empty());
}
