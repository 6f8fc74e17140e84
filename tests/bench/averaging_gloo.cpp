// gloo's ring all-reduce of the same vectors, with a thread for each rank in one process. It runs
// over
// TCP on loopback, the only transport in Debian's build. The time runs from a barrier to the last
// rank's end. The result is a sum, which the caller would still have to divide.
// Usage: averaging_gloo RANKS MEGABYTES ROUNDS    prints `seconds=S` for each round
#include "tests/bench/averaging.hpp"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: averaging_gloo RANKS MEGABYTES ROUNDS\n"), 2;
  const auto ranks = std::atoi(argv[1]);
  const auto n = std::strtoul(argv[2], nullptr, 10) * 250'000;
  const int rounds = std::atoi(argv[3]);
  gloo::rendezvous::HashStore store;
  std::barrier together(ranks);
  std::atomic<bool> wrong{false};
  std::chrono::steady_clock::time_point begun;
  auto rank_main = [&](int rank) {
    gloo::transport::tcp::attr where;
    where.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(where);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->connectFullMesh(store, device);
    auto input = shoal::bench::averaging_input(static_cast<std::uint64_t>(rank), n);
    std::vector<float> output(n);
    for (int r = -1; r < rounds; ++r) { // the first one is looked at and not timed
      gloo::AllreduceOptions options(context);
      options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
      options.setInput(input.data(), n);
      options.setOutput(output.data(), n);
      using sum = void (*)(void*, const void*, const void*, std::size_t);
      options.setReduceFunction(static_cast<sum>(&gloo::sum<float>));
      options.setTag(static_cast<std::uint32_t>(r + 1));
      together.arrive_and_wait();
      if (rank == 0) begun = std::chrono::steady_clock::now();
      gloo::allreduce(options);
      together.arrive_and_wait();
      if (r >= 0 && rank == 0)
        std::printf(
            "seconds=%.6f\n",
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
      if (r < 0)
        for (std::size_t j = 0; j < n && !wrong; ++j)
          if (output[j] != shoal::bench::averaging_sum(static_cast<std::uint64_t>(ranks), j))
            wrong = true;
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(rank_main, rank);
  for (auto& thread : threads) thread.join();
  if (wrong) return std::fprintf(stderr, "a value is wrong\n"), 1;
}
