// All averaging strategies of this program: one line each. NAME_strategy() stands in
// actors/averaging/strategies, in the file of that strategy.
#include "actors/averaging/averaging_strategy.hpp"

#define SHOAL_STRATEGIES(X)                                                                        \
  X(moshpit)                                                                                       \
  X(random_groups)                                                                                 \
  X(all_reduce)                                                                                    \
  X(parameter_server)                                                                              \
  X(gossip)                                                                                        \
  X(push_sum)

namespace shoal::actors {

#define SHOAL_DECLARE(name) averaging_strategy name##_strategy();
SHOAL_STRATEGIES(SHOAL_DECLARE)
#undef SHOAL_DECLARE

definition_list<averaging_strategy>& averaging_strategies() {
#define SHOAL_MAKE(name) name##_strategy(),
  static definition_list<averaging_strategy> list{SHOAL_STRATEGIES(SHOAL_MAKE)};
#undef SHOAL_MAKE
  return list;
}

} // namespace shoal::actors
