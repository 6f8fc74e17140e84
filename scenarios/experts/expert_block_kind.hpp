// The kinds of block that an expert of the workload 'mixture' can be. Each kind is one file in this
// folder that makes an expert_block_kind, and one line in scenarios/experts/expert_blocks.cpp. A
// program outside of the tree calls expert_blocks().add() when it starts. `workload.experts` in a
// scenario accepts the kind's name then.
#pragma once

#include "kernels/base/definition_list.hpp"
#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/expert_block.hpp"
#include "kernels/learn/text_trunk.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace shoal::scenarios {

/// All functions get the sizes of the trunk: heads, dim and context of its layers.
struct expert_block_kind {
  std::string name;    ///< as scenarios write it
  std::string meaning; ///< for the reference page, without full stop
  /// The rows that the gate routes, and so the width of the block: dim, or context * dim.
  learn::text_row row = learn::text_row::token;
  /// The parameters of the block, without making it.
  std::function<std::size_t(const kernels::transformer_config&)> parameters;
  /// Floating-point operations of one row, forward.
  std::function<double(const kernels::transformer_config&)> row_flops;
  /// Errors: sizes of which there is no such block, a library that cannot be loaded.
  std::function<result<std::shared_ptr<const learn::expert_block>>(
      const kernels::transformer_config&)>
      make;
};

/// All kinds; the first one is the default.
definition_list<expert_block_kind>& expert_blocks();

/// The meaning of `workload.experts` for the reference page: that of each kind.
const char* expert_blocks_meaning();

} // namespace shoal::scenarios
