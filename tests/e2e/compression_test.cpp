// Training with averaged vectors encoded by a codec. The swarm learns as it does without, all
// members hold the same bits, and fewer bytes travel. The same holds while members die and other
// members reduce their parts again.
#include "kernels/compress/codec.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace shoal;
using namespace shoal::e2e;

namespace {

swarm learning(const std::string& compression) {
  swarm out;
  out.parameters = "4000";
  out.epochs = 20;
  out.averaging = ", compression: " + compression;
  return out;
}

double bytes_an_epoch(const finished_run& run) {
  return static_cast<double>(run.summary().bytes_sent.averaging) /
         static_cast<double>(run.summary().epochs);
}

} // namespace

TEST_CASE("compression: each codec learns as well as none, and the same bits are everywhere") {
  const auto plain = run_swarm(learning("none"));
  CHECK(plain.errors.empty());
  for (const auto codec : kernels::all_codecs) {
    if (codec == kernels::codec::none) continue;
    const auto what = learning(std::string(kernels::to_string(codec)));
    const auto run = run_swarm(what);
    INFO(run.text(what.yaml()));
    CHECK(run.errors.empty());
    CHECK(rule(run.summary(), "same_bits").checked > 0);
    CHECK(rule(run.summary(), "mass_conserved").checked > 0);
    // Besides the values, envelopes of 2 KiB chunks and matchmaking.
    if (codec == kernels::codec::float16) CHECK(bytes_an_epoch(run) < 0.7 * bytes_an_epoch(plain));
    if (codec == kernels::codec::blockwise8)
      CHECK(bytes_an_epoch(run) < 0.45 * bytes_an_epoch(plain));
    MESSAGE(std::string(kernels::to_string(codec))
            << ": loss " << *run.summary().loss.final << ", " << bytes_an_epoch(run)
            << " bytes an epoch; without " << *plain.summary().loss.final << ", "
            << bytes_an_epoch(plain));
    CHECK(*run.summary().loss.final < 1.02 * *plain.summary().loss.final);
    CHECK(*run.summary().loss.final < 0.8 * *run.summary().loss.first);
  }
}

TEST_CASE("compression: with moshpit, where parameters are averaged") {
  for (const char* codec : {"float16", "blockwise8"}) {
    auto what = learning(codec);
    what.peers = 4;
    what.training = ", method: moshpit, local_steps: 4";
    what.averaging += ", grid: 2x2";
    const auto run = run_swarm(what);
    INFO(run.text(what.yaml()));
    CHECK(run.errors.empty());
    CHECK(*run.summary().loss.final < 0.8 * *run.summary().loss.first);
  }
}

TEST_CASE("compression: whoever dies, and whoever reduces its part again, all who end well hold "
          "the same bits") {
  std::uint64_t partial = 0;
  for (const char* probe : {"all_reduce.half_sent", "all_reduce.first_reduced",
                            "all_reduce.half_replied", "all_reduce.voted"})
    for (const char* codec : {"uniform8", "blockwise8"}) {
      auto what = learning(codec);
      what.peers = 5;
      what.epochs = 4;
      what.faults = {fmt::format("{{kill: machine, select: p-1, on: {}, nth: 2}}", probe)};
      const auto run = run_swarm(what);
      INFO(run.text(what.yaml()));
      CHECK(run.errors.empty());
      partial += run.summary().rounds.partial;
    }
  CHECK(partial > 0);
}

TEST_CASE("compression: top_k sends the largest values, keeps the others for later, and learns "
          "from them all") {
  const auto plain = run_swarm(learning("none"));
  for (const char* fraction : {"100%", "10%"}) {
    auto what = learning("top_k");
    what.averaging += fmt::format(", top_k_fraction: {}", fraction);
    const auto run = run_swarm(what);
    INFO(run.text(what.yaml()));
    CHECK(run.errors.empty());
    CHECK(rule(run.summary(), "mass_conserved").checked > 0);
    MESSAGE("top_k " << std::string(fraction) << ": loss " << *run.summary().loss.final << ", "
                     << bytes_an_epoch(run) << " bytes an epoch; without "
                     << *plain.summary().loss.final << ", " << bytes_an_epoch(plain));
    CHECK(*run.summary().loss.final < 0.8 * *run.summary().loss.first);
    if (std::string(fraction) == "10%") CHECK(bytes_an_epoch(run) < 0.8 * bytes_an_epoch(plain));
    if (std::string(fraction) == "100%")
      CHECK(*run.summary().loss.final < 1.02 * *plain.summary().loss.final);
  }
  // Another codec may encode the means.
  auto what = learning("top_k");
  what.averaging += ", top_k_fraction: 10%, means_compression: blockwise8";
  const auto run = run_swarm(what);
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  CHECK(bytes_an_epoch(run) < 0.45 * bytes_an_epoch(plain));
  CHECK(*run.summary().loss.final < 0.8 * *run.summary().loss.first);
}

TEST_CASE("compression: PowerSGD learns in two rounds of few bytes, also with a codec, with "
          "joiners, and where nobody trains on a host") {
  auto what = learning("none");
  what.parameters = "4096";
  what.workload = ", rows: 64";
  const auto plain = run_swarm(what);
  for (const char* more : {"", ", compression: float16", ", compression: blockwise8"}) {
    what.averaging = std::string(", power_sgd_rank: 4") + more;
    const auto run = run_swarm(what);
    INFO(run.text(what.yaml()));
    CHECK(run.errors.empty());
    // Two rounds a step, of which the second one counts.
    CHECK(run.summary().rounds.ok + run.summary().rounds.partial == run.summary().epochs);
    MESSAGE("PowerSGD" << std::string(more) << ": loss " << *run.summary().loss.final << ", "
                       << bytes_an_epoch(run) << " bytes an epoch; without "
                       << *plain.summary().loss.final << ", " << bytes_an_epoch(plain));
    CHECK(*run.summary().loss.final < 0.8 * *run.summary().loss.first);
    CHECK(bytes_an_epoch(run) < 0.6 * bytes_an_epoch(plain));
  }
  what.averaging = ", power_sgd_rank: 4";
  what.epochs = 30;
  what.late =
      "  late: {count: 2, up: 1Mbit, down: 40Mbit, device: fast, start: 6s, start_spacing: 2s}\n"
      "  aux: {count: 1, up: 4Mbit, down: 40Mbit, device: fast, role: auxiliary}\n";
  const auto run = run_swarm(what);
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  CHECK(run.adopted > 0);
  CHECK(run.epoch_of.size() >= 5);
  CHECK(*run.summary().loss.final < 0.8 * *run.summary().loss.first);
}

TEST_CASE("compression: sizes alone are enough for PowerSGD, where the matrix is named") {
  auto what = learning("none");
  what.kind = "timing";
  what.parameters = "4096";
  const auto plain = run_swarm(what);
  what.workload = ", rows: 64";
  what.averaging = ", power_sgd_rank: 2";
  const auto run = run_swarm(what);
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  CHECK(bytes_an_epoch(run) < 0.5 * bytes_an_epoch(plain));
}

TEST_CASE("compression: whoever dies in whichever round of PowerSGD, or with top_k, all who end "
          "well hold the same bits") {
  std::uint64_t partial = 0, ok = 0;
  for (const char* probe :
       {"all_reduce.half_sent", "all_reduce.first_reduced", "all_reduce.half_replied",
        "all_reduce.voted", "all_reduce.before_commit"})
    for (const char* how : {"compression: top_k, top_k_fraction: 10%", "power_sgd_rank: 2",
                            "power_sgd_rank: 2, compression: uniform8"})
      for (unsigned nth : {3, 4}) { // PowerSGD's first and second round of the second step
        auto what = learning("none");
        what.averaging = fmt::format(", {}", how);
        what.parameters = "4096";
        what.workload = ", rows: 64";
        what.peers = 5;
        what.epochs = 6;
        what.faults = {fmt::format("{{kill: machine, select: p-1, on: {}, nth: {}}}", probe, nth)};
        const auto run = run_swarm(what);
        INFO(run.text(what.yaml()));
        CHECK(run.errors.empty());
        partial += run.summary().rounds.partial;
        ok += run.summary().rounds.ok;
      }
  CHECK(partial > 0);
  CHECK(ok > 0);
}

TEST_CASE("compression: a swarm of PowerSGD that loses and finds hosts, by partitions and "
          "restarts, has one state") {
  for (std::uint64_t seed : {1, 2, 3}) {
    auto what = learning("none");
    what.averaging = ", power_sgd_rank: 2";
    what.parameters = "4096";
    what.workload = ", rows: 64";
    what.peers = 6;
    what.epochs = 25;
    what.seed = seed;
    what.faults = {
        "{blackhole: both, select: p-2, at: 4s, duration: 3s}",
        "{restart: process, select: p-3, on: all_reduce.half_sent, nth: 3, downtime: 2s}",
        "{pause: host, select: p-4, on: all_reduce.half_replied, nth: 5, duration: 5s}"};
    const auto run = run_swarm(what);
    INFO(run.text(what.yaml()));
    CHECK(run.errors.empty());
    CHECK(run.adopted > 0);
  }
}
