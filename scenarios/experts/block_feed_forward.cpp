// The block 'feed_forward': two hidden layers of four times the width (kernels/learn/
// feed_forward.hpp).
#include "kernels/learn/feed_forward.hpp"
#include "scenarios/experts/expert_block_kind.hpp"

namespace shoal::scenarios {

expert_block_kind feed_forward_block() {
  expert_block_kind out;
  out.name = "feed_forward";
  out.meaning = "two hidden layers of four times the width. The gate chooses the experts of each "
                "token";
  out.parameters = [](const kernels::transformer_config& of) {
    const auto width = static_cast<std::size_t>(of.dim);
    return 24 * width * width + 25 * width;
  };
  out.row_flops = [](const kernels::transformer_config& of) {
    const auto width = static_cast<double>(of.dim);
    return 2 * 24 * width * width;
  };
  out.make = [](const kernels::transformer_config& of) {
    return result<std::shared_ptr<const learn::expert_block>>(
        learn::make_feed_forward(static_cast<std::size_t>(of.dim)));
  };
  return out;
}

} // namespace shoal::scenarios
