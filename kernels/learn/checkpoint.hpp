// A checkpoint: a state of a swarm in one file, to start another swarm from, or a model to use.
// Little-endian:
//   magic "SHOALCKP" [8], version u32, header size u32, header (JSON, UTF-8), zeros up to a
//   multiple of 64 bytes; parameters float32 [n]; optimizer state [4 m] (kernels::state_bytes, Q of
//   PowerSGD, and the training method's state, where there are such); then four BLAKE2b-256 [32
//   each]: of the header and all before it, of the parameters, of the optimizer state, and of the
//   whole file up to there.
// The header has the workload, the tensors' names and shapes in the order in which they lie in the
// parameters, the optimizer, epoch, steps, samples, where the data goes on, state id, n, m, how
// many of m are Q of PowerSGD and the method's state, and free notes. `model` is a JSON object that
// the model's own code writes and reads, or null; nothing here looks into it.
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
  std::string workload;                      ///< as scenarios name it
  std::vector<kernels::tensor_slot> tensors; ///< of the parameters
  /// The model's own description: a JSON object as canonical text (keys in their order, no spaces);
  /// empty where the tensors say all.
  std::string model;
  kernels::optimizer_config optimizer;
  std::uint64_t epoch = 0;     ///< of the swarm
  std::uint64_t step = 0;      ///< optimizer steps taken
  std::uint64_t samples = 0;   ///< in all steps that led here
  std::uint64_t data_from = 0; ///< all sample indices that led here are below it
  std::string state_id;        ///< 32 hexadecimal digits, as the progress records have it
  std::map<std::string, std::string> notes; ///< such as scenario, seed, data digest; for people
  std::vector<float> parameters;
  std::vector<std::byte> optimizer_state; ///< may be empty: a model to use, not to go on training
  /// Gradients were averaged with PowerSGD of this rank, and so many floats at the end of
  /// optimizer_state are its Q; 0: they were not.
  std::uint64_t power_sgd_rank = 0, power_sgd_values = 0;
  std::vector<std::byte> method_state; ///< of the training method, such as an outer momentum: whole
                                       ///< floats; empty for most
};

/// One tensor of all `n` parameters, for models that know no layers.
std::vector<kernels::tensor_slot> one_tensor(std::string name, std::size_t n);

/// Whether names and shapes are the same.
bool same_tensors(const std::vector<kernels::tensor_slot>& a,
                  const std::vector<kernels::tensor_slot>& b);

/// What makes two models the same model: the description, such as 'transformer: context 64, dim 64,
/// heads 4, layers 2, vocabulary 256', or without one the tensors: 'quadratic: weights [4000]'.
std::string shape_text(const checkpoint& of);

/// Can training go on from `saved` where `wanted` (workload, tensors, model, optimizer; no numbers)
/// is trained? Errors: another model (names both shapes), another optimizer, or no state of it.
/// Rates and the like may differ.
result<void> continues(const checkpoint& saved, const checkpoint& wanted);

/// Writes beside `path` and renames, so that a reader sees the old file or the whole new one.
/// Requires: parameters have the tensors' size; `model` is a JSON object or empty. Errors: the path
/// and the system's reason (no space, no permission).
result<void> save(const checkpoint& state, const std::filesystem::path& path);

/// Errors: no such file, not a checkpoint, a version of another Shoal, truncated, damaged (which
/// section's hash, what it should be and what it is), or sizes that do not agree; nothing larger
/// than the file itself is ever allocated.
result<checkpoint> load_checkpoint(const std::filesystem::path& path);
/// The same from a stream of `size` bytes, which errors call `name`.
result<checkpoint> read_checkpoint(std::istream& in, std::uint64_t size, const std::string& name);

} // namespace shoal::learn
