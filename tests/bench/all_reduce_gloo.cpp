// gloo's ring all-reduce among processes, over TCP (the only transport that Debian's build has), to
// compare wire_all_reduce with. From a barrier to the last process' end; a sum, which the caller
// would still have to divide. They find each other through files. Usage: all_reduce_gloo RANKS
// MEGABYTES ROUNDS [SPACE:ADDRESS,...]    prints `seconds=S` for each round, and `resident_mib=M`
//   with network namespaces and addresses: a rank in each
#include "tests/bench/averaging.hpp"
#include "tests/bench/processes.hpp"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

using namespace shoal::bench;

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5)
    return std::fprintf(stderr,
                        "usage: all_reduce_gloo RANKS MEGABYTES ROUNDS [SPACE:ADDRESS,...]\n"),
           2;
  const auto ranks = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
  const auto n = std::strtoul(argv[2], nullptr, 10) * 250'000;
  const auto rounds = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10));
  auto places = parse_places(argc == 5 ? argv[4] : "");
  places.resize(std::max<std::size_t>(places.size(), ranks));
  if (ranks == 0 || ranks > most_processes || rounds >= most_rounds)
    return std::fprintf(stderr, "too many\n"), 2;
  auto& all = share<shared_times>(ranks);
  std::string files = (std::filesystem::temp_directory_path() / "shoal_gloo_XXXXXX").string();
  if (mkdtemp(files.data()) == nullptr) return std::perror("mkdtemp"), 3;
  const bool good = run_processes(ranks, [&](unsigned rank) {
    enter(places[rank].space);
    gloo::transport::tcp::attr where;
    where.hostname = places[rank].address;
    gloo::rendezvous::FileStore store(files);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank),
                                                               static_cast<int>(ranks));
    auto device = gloo::transport::tcp::CreateDevice(where);
    context->connectFullMesh(store, device);
    auto input = averaging_input(rank, n);
    std::vector<float> output(n);
    for (unsigned r = 0; r <= rounds; ++r) {
      gloo::AllreduceOptions options(context);
      options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
      options.setInput(input.data(), n);
      options.setOutput(output.data(), n);
      using sum = void (*)(void*, const void*, const void*, std::size_t);
      options.setReduceFunction(static_cast<sum>(&gloo::sum<float>));
      options.setTag(r);
      options.setTimeout(std::chrono::minutes(5));
      all.wait();
      all.begun[r][rank] = steady_ns();
      gloo::allreduce(options);
      all.ended[r][rank] = steady_ns();
      all.wait();
      for (std::size_t j = 0; r == 0 && j < n; ++j)
        if (output[j] != averaging_sum(ranks, j))
          return std::fprintf(stderr, "value %zu is wrong\n", j), 1;
    }
    all.resident_kib[rank] = most_resident_kib();
    all.wait();
    return 0;
  });
  std::filesystem::remove_all(files);
  if (!good) return 1;
  print_times(all, ranks, rounds);
}
