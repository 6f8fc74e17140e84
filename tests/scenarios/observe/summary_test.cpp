#include "scenarios/observe/summary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

summary example() {
  summary s;
  s.scenario = "quickstart";
  s.seed = 18446744073709551615u;
  s.world = "sim";
  s.event_hash = "ab12";
  s.virtual_seconds = 312.25;
  s.wall_seconds = 0.1;
  s.peak_rss_bytes = 3u << 20;
  s.epochs = 40;
  s.samples = 10240;
  s.loss = {5.5, 2.0625, std::nullopt, 2.5};
  s.rounds = {38, 2, 0, 1, {{"sender_lost", 2}, {"reducer_lost", 1}}};
  s.bytes_sent = {1, 2048, 3, 4};
  s.peers = {18, 3, 15};
  s.invariants = {{"same_bits", {500, 0, ""}},
                  {"denominator", {900, 1, "at 1.000000000 s: part 0"}}};
  return s;
}

} // namespace

TEST_CASE("a summary reads back as it was written, in a stable order") {
  const summary s = example();
  const std::string text = to_json(s);
  const auto back = summary_from_json(text);
  REQUIRE(back.ok());
  CHECK(*back == s);
  CHECK(to_json(*back) == text);
  std::size_t at = 0;
  for (const char* key : {"scenario",     "seed",
                          "world",        "event_hash",
                          "state_hash",   "virtual_seconds",
                          "wall_seconds", "peak_rss_bytes",
                          "epochs",       "samples",
                          "loss",         "first",
                          "final",        "baseline",
                          "bigram",       "rounds",
                          "ok",           "partial",
                          "split",        "failed",
                          "by_reason",    "bytes_sent",
                          "data",         "averaging",
                          "state",        "control",
                          "peers",        "joined",
                          "left",         "alive",
                          "invariants",   "same_bits",
                          "checked",      "violated"}) {
    CAPTURE(key);
    at = text.find("\"" + std::string(key) + "\":", at);
    CHECK(at != std::string::npos);
  }
}

TEST_CASE("a missing value is null, and no number that is not finite is written") {
  summary s = example();
  s.loss.final = std::numeric_limits<double>::quiet_NaN();
  s.loss.first = std::numeric_limits<double>::infinity();
  const std::string text = to_json(s);
  CHECK(text.find("\"final\": null") != std::string::npos);
  CHECK(text.find("\"first\": null") != std::string::npos);
  CHECK(text.find("\"state_hash\": null") != std::string::npos);
  CHECK(text.find("nan") == std::string::npos);
  CHECK(summary_from_json(text).ok());
}

TEST_CASE("a text that is no summary is an error") {
  CHECK(!summary_from_json("").ok());
  CHECK(!summary_from_json("{").ok());
  CHECK(!summary_from_json("[]").ok());
  const auto missing = summary_from_json("{\"scenario\": \"x\"}");
  REQUIRE(!missing.ok());
  CHECK(missing.error().find("seed") != std::string::npos);
}

TEST_CASE("a number of the summary is found by its path") {
  const summary s = example();
  CHECK(summary_number(s, "loss.final") == 2.0625);
  CHECK(summary_number(s, "rounds.by_reason.sender_lost") == 2);
  CHECK(summary_number(s, "rounds.by_reason.leader_lost") == 0);
  CHECK(summary_number(s, "invariants.denominator.violated") == 1);
  CHECK(!summary_number(s, "loss.baseline").has_value());
  CHECK(!summary_number(s, "loss").has_value());
  CHECK(!summary_number(s, "rounds.by_reason.whatever").has_value());
  CHECK(!summary_number(s, "scenario").has_value());
}

TEST_CASE("the table for people shows losses, rounds with reasons, and what was violated") {
  const std::string text = table(example());
  CHECK(text.find("quickstart, seed 18446744073709551615, world sim\n") != std::string::npos);
  CHECK(text.find("5 min 12 s virtual") != std::string::npos);
  CHECK(text.find("18 joined, 3 left, 15 alive") != std::string::npos);
  CHECK(text.find("40 epochs, 10,240 samples") != std::string::npos);
  CHECK(text.find("first 5.5000, final 2.0625, bigrams 2.5000") != std::string::npos);
  CHECK(text.find("38 ok, 2 partial, 0 split, 1 failed (reducer_lost 1, sender_lost 2)") !=
        std::string::npos);
  CHECK(text.find("averaging 2.0 KiB") != std::string::npos);
  CHECK(text.find("2 of 2 kinds checked 1,400 times, 1 violated") != std::string::npos);
  CHECK(text.find("denominator violated 1 times, first at 1.000000000 s: part 0") !=
        std::string::npos);
}

TEST_CASE(
    "a run of many days tells of them, in at most twenty rows, and how far its schedule got") {
  summary s = example();
  s.epochs = 25000;
  s.epochs_planned = 31250;
  for (std::uint64_t i = 0; i < 75; ++i)
    s.days.push_back(
        {i % 2 == 0 ? 28.0 : 30.0, 330 + i, 4096 * (330 + i), std::uint64_t{10} << 30});
  const auto back = summary_from_json(to_json(s));
  REQUIRE(back.ok());
  CHECK(*back == s);
  const std::string text = table(s);
  CHECK(text.find("\n  1 to 4         29.0    1,326    5,431,296        1.4 GiB\n") !=
        std::string::npos);
  CHECK(text.find("\n  73 to 75       28.7    1,209    4,952,064        1.0 GiB\n") !=
        std::string::npos);
  CHECK(text.find("\n  schedule     25,000 of 31,250 steps (80.0 %)\n") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') < 32);
  s.days.resize(2);
  CHECK(table(s).find("\n  2              30.0      331    1,355,776      341.3 MiB\n") !=
        std::string::npos);
  CHECK(table(example()).find("schedule") == std::string::npos);
}

TEST_CASE("the process has used memory") {
  CHECK(peak_rss_bytes() > 1 << 20);
}
