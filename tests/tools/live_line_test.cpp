#include "tools/live_line.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::tools;

namespace {

scenarios::live_status status() {
  scenarios::live_status out;
  out.progress.time = std::chrono::seconds(309);
  out.progress.epoch = 78;
  out.progress.train_loss = 1.973;
  out.progress.peers_alive = 13;
  out.rounds.by_outcome = {77, 1, 0, 2};
  out.wall_seconds = 94;
  out.epochs_target = 110;
  return out;
}

}  // namespace

TEST_CASE("the live line says when, how far, how long still, and which rounds there were") {
  CHECK(live_line::text(status()) == "5m09s epoch 78/110 ETA 39s  loss 1.973  peers 13  rounds 77 ok 1 partial 2 failed");
  auto open = status();
  open.epochs_target = 0;
  open.stop_time = std::chrono::seconds(618);
  CHECK(live_line::text(open).starts_with("5m09s epoch 78 ETA 1m34s "));
  auto baseline = status();
  baseline.doing = "baseline";
  CHECK(live_line::text(baseline).find("now the same on one machine") != std::string::npos);
}

TEST_CASE("a terminal of 80 columns shows all that matters") {
  auto s = status();
  const auto line = live_line::fitted(s, 79);
  CHECK(line == "5m09s epoch 78/110 ETA 39s loss 1.973 peers 13  rounds 77 ok 1 partial 2 failed");
  CHECK(line.size() <= 79);
  s.progress.violations = 3;
  s.progress.time = std::chrono::hours(30);
  CHECK(live_line::fitted(s, 79).find("3 INVARIANTS VIOLATED") != std::string::npos);
  CHECK(live_line::fitted(s, 30).size() == 30);
}
