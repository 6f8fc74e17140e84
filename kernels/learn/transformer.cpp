#include "kernels/learn/transformer.hpp"

namespace shoal::learn {

transformer::transformer(const kernels::transformer_config& config, bool checkpoint)
    : sampled_transformer(config, layout_of(config)),
      math_(make_transformer_math({config, checkpoint, layout()})) {}

} // namespace shoal::learn
