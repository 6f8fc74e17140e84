// Training with what is averaged written by a codec: it learns as it does without, all hold the same bits, and
// fewer bytes travel, also while members die and their parts are reduced again by others.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernels/compress/codec.hpp"
#include "tests/e2e/support/swarm.hpp"

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
  return static_cast<double>(run.summary().bytes_sent.averaging) / static_cast<double>(run.summary().epochs);
}

}  // namespace

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
    if (codec == kernels::codec::blockwise8) CHECK(bytes_an_epoch(run) < 0.45 * bytes_an_epoch(plain));
    MESSAGE(std::string(kernels::to_string(codec)) << ": loss " << *run.summary().loss.final << ", " << bytes_an_epoch(run) << " bytes an epoch; without "
                                                   << *plain.summary().loss.final << ", " << bytes_an_epoch(plain));
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

TEST_CASE("compression: whoever dies, and whoever reduces its part again, all who end well hold the same bits") {
  std::uint64_t partial = 0;
  for (const char* probe : {"all_reduce.half_sent", "all_reduce.first_reduced", "all_reduce.half_replied", "all_reduce.voted"})
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
