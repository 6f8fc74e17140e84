// The built-in kinds of an expert's block, a line each. NAME_block() stands in
// scenarios/experts/block_NAME.cpp.
#include "scenarios/experts/expert_block_kind.hpp"

#include <fmt/format.h>

#define SHOAL_EXPERT_BLOCKS(X)                                                                     \
  X(feed_forward)                                                                                  \
  X(transformer)

namespace shoal::scenarios {

#define SHOAL_DECLARE(name) expert_block_kind name##_block();
SHOAL_EXPERT_BLOCKS(SHOAL_DECLARE)
#undef SHOAL_DECLARE

definition_list<expert_block_kind>& expert_blocks() {
#define SHOAL_MAKE(name) name##_block(),
  static definition_list<expert_block_kind> all{SHOAL_EXPERT_BLOCKS(SHOAL_MAKE)};
#undef SHOAL_MAKE
  return all;
}

const char* expert_blocks_meaning() {
  static const std::string text = [] {
    std::string out = "the block that each expert is";
    for (const auto& each : expert_blocks().all())
      out += fmt::format(". `{}`: {}", each.name, each.meaning);
    return out;
  }();
  return text.c_str();
}

} // namespace shoal::scenarios
