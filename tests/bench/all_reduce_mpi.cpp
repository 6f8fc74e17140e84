// Open MPI's all-reduce, to compare wire_all_reduce with: `mpirun -np 4 --mca btl tcp,self
// all_reduce_mpi 100 5`, and without the option over shared memory. From a barrier to the last
// process' end; a sum, which the caller would still have to divide. Usage: mpirun [OPTION...]
// all_reduce_mpi MEGABYTES ROUNDS    prints `seconds=S` for each round, and `resident_mib=M`
#include "tests/bench/averaging.hpp"
#include "tests/bench/processes.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

using namespace shoal::bench;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) {
    if (rank == 0)
      std::fprintf(stderr, "usage: mpirun [OPTION...] all_reduce_mpi MEGABYTES ROUNDS\n");
    MPI_Finalize();
    return 2;
  }
  const auto n = std::strtoul(argv[1], nullptr, 10) * 250'000;
  const auto rounds = std::atoi(argv[2]);
  const auto input = averaging_input(static_cast<std::uint64_t>(rank), n);
  std::vector<float> output(n);
  for (int r = 0; r <= rounds; ++r) { // the first one is looked at and not timed
    MPI_Barrier(MPI_COMM_WORLD);
    std::int64_t begun = steady_ns(), first = 0, last = 0;
    MPI_Allreduce(input.data(), output.data(), static_cast<int>(n), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    std::int64_t ended = steady_ns();
    MPI_Reduce(&begun, &first, 1, MPI_INT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&ended, &last, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    if (r > 0 && rank == 0) std::printf("seconds=%.6f\n", 1e-9 * static_cast<double>(last - first));
    for (std::size_t j = 0; r == 0 && j < n; ++j)
      if (output[j] != averaging_sum(static_cast<std::uint64_t>(ranks), j)) {
        std::fprintf(stderr, "value %zu is wrong\n", j);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
  }
  std::uint64_t mine = most_resident_kib(), most = 0;
  MPI_Reduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("resident_mib=%.1f\n", static_cast<double>(most) / 1024);
  MPI_Finalize();
}
