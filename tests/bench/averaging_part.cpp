// One part at its reducer, with all work between the network and the result. This work is the
// bookkeeping of the chunks, the weighted sum, the list of senders, and the copy into the result.
// Beside it runs a plain loop over the same memory, which reads each input once, writes the sum and
// copies it. Both sides count the same moved bytes: 4 (P + 3) for each value. The inputs are cold:
// they are as large as a part of 100 MB, and the sides take turns on the same ones. A reducer
// writes the part into memory that is new in each round, which the system has to clear first, and
// so does `plain`. `warm` is the same loop on memory that it has written before. Usage:
// averaging_part SENDERS MEGABYTES CHUNK_KIB ROUNDS
//   prints one line a round, `shoal=GB/s plain=GB/s warm=GB/s`
#include "actors/averaging/part_reduction.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace shoal;
using namespace shoal::actors;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Not inlined, so that the compiler sees neither sizes nor that the result is not needed.
[[gnu::noinline, gnu::optimize("O3")]] void plain(const std::vector<const float*>& inputs,
                                                  float* sum, float* result, std::size_t n) {
  const float *a = inputs[0], *b = inputs[1 % inputs.size()], *c = inputs[2 % inputs.size()],
              *d = inputs[3 % inputs.size()];
  if (inputs.size() == 4) {
    for (std::size_t j = 0; j < n; ++j) sum[j] = a[j] + b[j] + c[j] + d[j];
  } else {
    // More inputs than that: by blocks that stay in the first-level cache.
    for (std::size_t at = 0; at < n; at += 1024) {
      const auto end = std::min(n, at + 1024);
      for (std::size_t j = at; j < end; ++j) sum[j] = inputs[0][j];
      for (std::size_t i = 1; i < inputs.size(); ++i)
        for (std::size_t j = at; j < end; ++j) sum[j] += inputs[i][j];
    }
  }
  std::memcpy(result, sum, 4 * n);
}

void reduce(const std::vector<payload>& inputs, const std::vector<std::uint64_t>& weights,
            chunk_grid grid, float* result) {
  part_reduction part(grid, weights, false, averaging_config{}, duration{});
  part.open(chunk_set(grid.count(), true), duration{});
  // As they come from equal lines: chunk by chunk, each from all senders.
  for (std::uint32_t k = 0; k < grid.count(); ++k)
    for (std::uint32_t m = 0; m < inputs.size(); ++m) {
      part.add(m, k, inputs[m].slice(grid.offset(k), grid.size(k)), duration{});
      while (auto done = part.next()) {
        SHOAL_CHECK(done->senders.size() == inputs.size(), "everybody is in it");
        std::memcpy(reinterpret_cast<std::byte*>(result) + grid.offset(done->chunk),
                    done->values.bytes().data(), done->values.size());
      }
    }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 5)
    return std::fprintf(stderr, "usage: averaging_part SENDERS MEGABYTES CHUNK_KIB ROUNDS\n"), 2;
  const auto senders = std::strtoul(argv[1], nullptr, 10),
             n = std::strtoul(argv[2], nullptr, 10) * 250'000;
  const auto chunk_bytes = std::strtoul(argv[3], nullptr, 10) * 1024;
  const int rounds = std::atoi(argv[4]);
  std::vector<payload> inputs;
  std::vector<std::uint64_t> weights;
  std::vector<const float*> raw;
  std::vector<kernels::weighted_values> view;
  auto random = stream(1, "averaging_part");
  for (std::size_t m = 0; m < senders; ++m) {
    std::vector<float> values(n);
    for (auto& x : values) x = static_cast<float>(random.below(1 << 20)) * 0x1p-20f;
    inputs.emplace_back(std::move(values));
    weights.push_back(m + 1);
    raw.push_back(inputs.back().floats().data());
    view.push_back({static_cast<double>(m + 1), inputs.back().floats()});
  }
  std::vector<float> result(n), sum(n);
  const chunk_grid grid{4 * n, chunk_bytes};
  reduce(inputs, weights, grid, result.data());
  const auto expected = kernels::weighted_mean_reference(view);
  for (std::size_t j = 0; j < n; ++j)
    if (std::abs(result[j] - expected[j]) > 1e-6f)
      return std::fprintf(stderr, "value %zu is wrong\n", j), 1;
  plain(raw, sum.data(), result.data(), n);
  const double bytes = 4.0 * static_cast<double>(n) * static_cast<double>(senders + 3);
  for (int r = 0; r < rounds; ++r) {
    auto start = std::chrono::steady_clock::now();
    reduce(inputs, weights, grid, result.data());
    const auto shoal_seconds = seconds_since(start);
    start = std::chrono::steady_clock::now();
    {
      float_buffer fresh(n);
      plain(raw, fresh.floats().data(), result.data(), n);
    }
    const auto plain_seconds = seconds_since(start);
    start = std::chrono::steady_clock::now();
    plain(raw, sum.data(), result.data(), n);
    std::printf("shoal=%.3f plain=%.3f warm=%.3f\n", bytes / shoal_seconds / 1e9,
                bytes / plain_seconds / 1e9, bytes / seconds_since(start) / 1e9);
  }
}
