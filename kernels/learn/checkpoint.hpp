// A checkpoint: a state of a swarm in one file, from which another swarm can start, or a model to
// use. Little-endian:
//   magic "SHOALCKP" [8], version u32, header size u32, header (JSON, UTF-8), zeros up to a
//   multiple of 64 bytes; parameters float32 [n]; optimizer state [4 m] (kernels::state_bytes, Q of
//   PowerSGD, and the training method's state, where there are such); then four BLAKE2b-256 [32
//   each]: of the header and all before it, of the parameters, of the optimizer state, and of the
//   whole file up to there.
// The header has the workload, the tensors' names and shapes in the order of the parameters, and
// the optimizer. It has epoch, steps, samples, state id, and free notes. It also has n, m, and the
// sizes of Q and of the method's state within m. One index tells where the data goes on. `model` is
// a JSON object that the model's own code writes and reads, or null. This file does not look into
// it.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace shoal::learn {

struct checkpoint {
  std::string workload;                      ///< the name in scenarios
  std::vector<kernels::tensor_slot> tensors; ///< the tensors of the parameters
  /// The model's own description: a JSON object as canonical text (keys in their order, no spaces).
  /// Empty if the tensors describe the model.
  std::string model;
  kernels::optimizer_config optimizer;
  std::uint64_t epoch = 0;     ///< epoch of the swarm
  std::uint64_t step = 0;      ///< optimizer steps taken
  std::uint64_t samples = 0;   ///< samples in all steps of this state's history
  std::uint64_t data_from = 0; ///< all sample indices of this state's history are below it
  std::string state_id;        ///< 32 hexadecimal digits, as the progress records have it
  std::map<std::string, std::string> notes; ///< such as scenario, seed, data digest; for people
  std::vector<float> parameters;
  std::vector<std::byte>
      optimizer_state; ///< empty for a model to use, with which training cannot go on
  /// The rank with which PowerSGD averaged the gradients, and the number of floats of its Q at the
  /// end of optimizer_state. 0 without PowerSGD.
  std::uint64_t power_sgd_rank = 0, power_sgd_values = 0;
  /// State of the training method, such as an outer momentum: whole floats. Empty for most methods.
  std::vector<std::byte> method_state;
};

/// One tensor of all `n` parameters, for models that know no layers.
std::vector<kernels::tensor_slot> one_tensor(std::string name, std::size_t n);

/// Whether names and shapes are the same.
bool same_tensors(const std::vector<kernels::tensor_slot>& a,
                  const std::vector<kernels::tensor_slot>& b);

/// The identity of a model. This is its description, such as 'transformer: context 64, dim 64,
/// heads 4, layers 2, vocabulary 256'. Without a description it is its tensors, such as 'quadratic:
/// weights [4000]'.
std::string shape_text(const checkpoint& of);

/// Whether training can go on from `saved` as `wanted` (workload, tensors, model, optimizer; no
/// numbers). Rates and the like may differ. Errors: another model (names both shapes), another
/// optimizer, or no optimizer state.
result<void> continues(const checkpoint& saved, const checkpoint& wanted);

/// Writes a file beside `path` and renames it, so that a reader sees the old file or the whole new
/// one. Requires: parameters have the tensors' size; `model` is a JSON object or empty. Errors: the
/// path and the system's reason (no space, no permission).
result<void> save(const checkpoint& state, const std::filesystem::path& path);

/// Errors: no such file, not a checkpoint, a version of another Shoal, or a truncated file. A
/// damaged file (which section's hash, its expected and its actual value), or sizes that do not
/// agree. The function never allocates more than the size of the file.
result<checkpoint> load_checkpoint(const std::filesystem::path& path);
/// The same from a stream of `size` bytes, which errors call `name`.
result<checkpoint> read_checkpoint(std::istream& in, std::uint64_t size, const std::string& name);

} // namespace shoal::learn
