// final.ckpt: a trained model in one file. Little-endian:
//   magic "SHOALCKP" [8], version u32, header size u32, header (JSON, UTF-8), zeros up to a
//   multiple of 64 bytes, parameters float32 [n], optimizer state [4 m] (kernels::state_bytes), BLAKE2b-256 of
//   everything before it [32].
// The header has the model's sizes, the optimizer, epoch, samples, state id, n, m, and free notes.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace shoal::learn {

struct checkpoint {
  kernels::transformer_config model;
  kernels::optimizer_config optimizer;
  std::uint64_t epoch = 0;                  ///< steps taken
  std::uint64_t samples = 0;                ///< samples committed in all epochs
  std::string state_id;                     ///< as the progress records have it
  std::map<std::string, std::string> notes; ///< such as scenario, seed, data digest; for people
  std::vector<float> parameters;
  std::vector<std::byte> optimizer_state; ///< may be empty: a model to use, not to go on training
};

/// Writes beside `path` and renames, so that a reader sees the old file or the whole new one.
/// Requires: parameters have the model's size. Errors: the path and the system's reason (no space,
/// no permission).
result<void> save(const checkpoint& state, const std::filesystem::path& path);

/// Errors: no such file, not a checkpoint, a version of another Shoal, truncated, damaged (digest),
/// or sizes that do not agree; nothing larger than the file itself is ever allocated.
result<checkpoint> load_checkpoint(const std::filesystem::path& path);

} // namespace shoal::learn
