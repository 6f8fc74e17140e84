// The memory that training a transformer takes, as two lists of figures with their formulas:
//   seeds  the calculator of the Transformers Training Transformers demonstration (Borzunov et al.,
//          "Training Transformers Together", arXiv:2207.03481), with its 18 models; the formulas
//          are derived from its results
//   shoal  Shoal's own estimate: what kernels/learn/transformer and kernels/optimizer hold, and,
//          in a swarm, what a peer holds besides; compared with measured memory in
//          results/memory.md
// The estimate leaves out code, the buffers of libraries, the corpus, messages on their way, and
// the waste of an allocator. It also leaves out the parts of others that a reducer waits for. Shoal
// does not train yet at other precisions than f32, nor on GPUs. There the estimate is what the same
// algorithm would hold. Formulas are text (kernels/formula.hpp): the program computes what it
// shows, here and on the page. Names in the formulas:
//   n samples at once, s tokens in a sample, d width, L layers, a heads, V vocabulary,
//   h inner width of a layer's two large matrices,
//   G layers that have parameters of their own (0: all),
//   1 or 0: C checkpointing, F offload, S swarm
//   bytes by choice of optimizer and precision: see memory_optimizer and memory_precision
//   seeds only: N GPUs, Z stage of ZeRO
//   DALL-E only: s tokens and codes together, V tokens of captions with their padding, t tokens of
//   a caption, K different codes
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/formula.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::kernels {

struct memory_shape {
  std::string name;
  std::int64_t layers = 0, heads = 0, dim = 0, hidden = 0, context = 0, vocabulary = 0;
  std::int64_t caption = 0, codes = 0; ///< DALL-E only
  bool operator==(const memory_shape&) const = default;
};

/// The models of the seeds' calculator, in its order. The calculator does not ask for heads, so
/// these are from the models' papers. gpt3-xl is wider in the calculator than in its paper, and has
/// the heads of the other model of that width.
const std::vector<memory_shape>& memory_models();

struct memory_optimizer {
  std::string name;
  double optimizer_bytes = 0; ///< state for each parameter
  bool blockwise = false;     ///< compress/blockwise8, which also has a scale for each 4096 values
};
/// sgd and sgd-momentum are not in the seeds' calculator. Its formula takes them like the others.
const std::vector<memory_optimizer>& memory_optimizers();

/// Bytes of one value of each kind.
struct memory_precision {
  std::string name;
  double seeds_weight_bytes = 0; ///< the seeds' 'weights' include the master copy
  double weight_bytes = 0;       ///< the weights that the model computes with
  double master_bytes = 0;   ///< the copy that the optimizer steps, if it is another one; else 0
  double gradient_bytes = 0; ///< gradients as the backward pass leaves them
  double activation_bytes = 0;
};
/// f32, mixed and f16: the seeds' O0, O1 (also O2) and O3.
const std::vector<memory_precision>& memory_precisions();

struct memory_choices {
  memory_shape shape;
  std::string optimizer = "adam", precision = "mixed";
  bool offload = false, checkpointing = false, swarm = false;
  std::int64_t sharing = 0, batch = 1;
  std::int64_t gpus = 1, zero = 0; ///< seeds only
};

/// Errors: a size that is not positive or above 2^40, or more groups of shared layers than layers.
/// An unknown optimizer or precision. ZeRO beyond stage 3.
result<void> validate(const memory_choices& choices);

enum class memory_unit : std::uint8_t { count, bytes, seconds };
std::string_view to_string(memory_unit unit) noexcept;

struct memory_definition {
  std::string name;
  memory_unit unit;
  std::string formula; ///< in the names above and the figures that stand before it in its list
  std::string what;    ///< the figure in words
};

const std::vector<memory_definition>& seeds_memory();
const std::vector<memory_definition>& shoal_memory();
/// Shoal's own estimate for kernels/learn/dalle with reversible layers. A backward pass is within
/// 5 % of what libtorch allocates (tests/learn/dalle_torch_test.cpp).
const std::vector<memory_definition>& dalle_memory();

/// The values of all names that are not figures.
/// Requires: validate(choices).
formula_values memory_inputs(const memory_choices& choices);

struct memory_figure {
  const memory_definition* of;
  double value;
};
/// In the order of the definitions. Requires: validate(choices).
std::vector<memory_figure> estimate_memory(const std::vector<memory_definition>& list,
                                           const memory_choices& choices);

/// Requires: one of the figures has that name.
double figure(const std::vector<memory_figure>& figures, std::string_view name);

} // namespace shoal::kernels
