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

} // namespace

TEST_CASE("the live line says when, how far, how long still, and which rounds there were") {
  CHECK(live_line::text(status()) ==
        "5m09s epoch 78/110 ETA 39s  loss 1.973  peers 13  rounds 77 ok 1 partial 2 failed");
  auto open = status();
  open.epochs_target = 0;
  open.stop_time = std::chrono::seconds(618);
  CHECK(live_line::text(open).starts_with("5m09s epoch 78 ETA 1m34s "));
  auto baseline = status();
  baseline.doing = "baseline";
  CHECK(live_line::text(baseline).find("now the same on one machine  ") != std::string::npos);
  baseline.reference = {20, 80, 12};
  CHECK(live_line::text(baseline).find("now the same on one machine, step 20/80 ETA 36s  ") !=
        std::string::npos);
}

TEST_CASE("a terminal of 80 columns shows all that matters") {
  auto s = status();
  const auto line = live_line::fitted(s, 79);
  CHECK(line == "5m09s epoch 78/110 ETA 39s loss 1.973 peers 13  rounds 77 ok 1 partial 2 failed");
  CHECK(line.size() <= 79);
  s.progress.violations = 3;
  s.progress.time = std::chrono::hours(30);
  CHECK(live_line::fitted(s, 79).find("3 INVARIANTS VIOLATED") != std::string::npos);
  // A narrow one shows whole words, the first ones; one that is narrower still, as much as it can.
  s = status();
  CHECK(live_line::fitted(s, 40) == "5m09s epoch 78/110 ETA 39s  loss 1.973");
  CHECK(live_line::fitted(s, 30) == "5m09s epoch 78/110 ETA 39s");
  CHECK(live_line::fitted(s, 12) == "5m09s epoch ");
}

TEST_CASE("the live line says how fast it goes where there is room") {
  const live_line::pace now{142.4, 61.3};
  CHECK(live_line::text(status(), now) ==
        "5m09s epoch 78/110 ETA 39s  loss 1.973  peers 13  rounds 77 ok 1 partial 2 failed  142 "
        "samples/s  61.3x real time");
  CHECK(live_line::fitted(status(), 79, now) == live_line::fitted(status(), 79));
  auto real = status();
  real.virtual_time = false;
  CHECK(live_line::text(real, now).ends_with("142 samples/s"));
}

TEST_CASE("colours change nothing of the live line but its colours") {
  auto s = status();
  s.progress.violations = 3;
  const auto line = live_line::text(s);
  auto painted = live_line::coloured(line);
  CHECK(painted.find("\x1b[31m2 failed\x1b[0m") != std::string::npos);
  CHECK(painted.find("\x1b[33m1 partial\x1b[0m") != std::string::npos);
  CHECK(painted.find("\x1b[1;31m3 INVARIANTS VIOLATED\x1b[0m") != std::string::npos);
  for (std::size_t at; (at = painted.find('\x1b')) != std::string::npos;)
    painted.erase(at, painted.find('m', at) - at + 1);
  CHECK(painted == line);
}
