// The block 'transformer': a layer with attention of its own (kernels/learn/
// transformer_expert.hpp).
#include "kernels/transformer_flops.hpp"
#include "scenarios/experts/expert_block_kind.hpp"

#if SHOAL_WITH_LEARN
#include "kernels/learn/transformer_expert.hpp"
#endif

namespace shoal::scenarios {

expert_block_kind transformer_block() {
  expert_block_kind out;
  out.name = "transformer";
  out.meaning = "a layer with attention. The gate chooses the experts of each whole sample";
  out.row = learn::text_row::sequence;
  out.parameters = [](kernels::transformer_config of) {
    of.layers = 2;
    const auto two = kernels::parameter_count(of);
    of.layers = 1;
    return two - kernels::parameter_count(of);
  };
  out.row_flops = [](const kernels::transformer_config& of) {
    const auto width = static_cast<double>(of.dim);
    return kernels::layer_forward_flops(static_cast<double>(of.context), width, 4 * width);
  };
#if SHOAL_WITH_LEARN
  out.make = learn::make_transformer_expert;
#endif
  return out;
}

} // namespace shoal::scenarios
