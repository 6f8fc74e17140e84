// The page of a run while it goes on, and the page of its directory afterwards.
#include "scenarios/page/run_reader.hpp"
#include "scenarios/page/run_view.hpp"
#include "tests/e2e/support/swarm.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace shoal;
using namespace shoal::e2e;
using json = nlohmann::ordered_json;

namespace {

swarm unlucky() {
  swarm out;
  out.peers = 6;
  out.epochs = 12;
  out.parameters = "20000";
  out.faults = {"{kill: process, select: p-1, on: all_reduce.half_sent, nth: 20}",
                "{throttle: up, select: \"p-*\", at: 3s, duration: 2s, factor: 50%}",
                "{restart: machine, select: p-2, at: 4s, downtime: 2s}"};
  return out;
}

/// The sections that differ, with both sides.
std::string difference(const std::string& a, const std::string& b) {
  const json x = json::parse(a), y = json::parse(b);
  std::string out;
  for (const auto& [name, value] : x.items())
    if (!y.contains(name) || value != y[name])
      out += fmt::format("{}\n  live      {}\n  directory {}\n", name, value.dump().substr(0, 1500),
                         y.value(name, json()).dump().substr(0, 1500));
  return out;
}

} // namespace

TEST_CASE("a page shows the same numbers live and from the directory") {
  for (const char* kind : {"quadratic", "timing"}) {
    CAPTURE(kind);
    const scratch_folder folder;
    scenarios::run_view live;
    auto what = unlucky();
    what.kind = kind;
    scenarios::runner_options options;
    options.out = folder.path / "run";
    options.listener = &live;
    // Pictures in between change nothing.
    options.on_status = [&](const scenarios::live_status&) { live.document(); };
    auto yaml = what.yaml();
    yaml.replace(yaml.find("events: none"), 12, "events: rounds");
    const auto run = run_yaml(yaml, what.epochs, std::move(options));
    auto read = scenarios::read_run_view(folder.path / "run");
    REQUIRE_MESSAGE(read.ok(), read.error());
    const auto now = live.document(), later = (*read)->document();
    CHECK_MESSAGE(now == later, difference(now, later));
    const json seen = json::parse(now);
    CHECK(seen["participants"]["samples"] == run.summary().samples);
    CHECK(seen["rounds"]["by_outcome"]["ok"].get<std::uint64_t>() <= run.summary().rounds.ok);
    CHECK(seen["faults"].size() >= 2);
    std::uint64_t sent = 0;
    for (const auto& host : seen["traffic"]["hosts"])
      for (const auto& bytes : host["bytes"]) sent += bytes.get<std::uint64_t>();
    const auto& all = run.summary().bytes_sent;
    // Delivered, while the summary has what was sent.
    CHECK(sent <= all.data + all.averaging + all.state + all.control);
    CHECK(static_cast<double>(sent) >
          0.95 * static_cast<double>(all.data + all.averaging + all.state + all.control));
  }
}

TEST_CASE("a listener changes no history") {
  const auto alone = run_swarm(unlucky());
  scenarios::run_view live;
  scenarios::runner_options options;
  options.listener = &live;
  const auto watched = run_swarm(unlucky(), std::move(options));
  CHECK(alone.summary().event_hash == watched.summary().event_hash);
  CHECK(alone.summary().state_hash == watched.summary().state_hash);
}
