// All conducts of this program, by name: honest, injected bugs, and attacks. A test or a scenario
// gives them to hosts.
#pragma once

#include "actors/conduct/conduct_options.hpp"
#include "kernels/base/definition_list.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace shoal::actors {

class conduct;
class host;

enum class conduct_kind : std::uint8_t {
  honest,
  bug, ///< an injected bug that `shoal chaos --mutants` has to find
  attack,
};

struct conduct_definition {
  std::string name;    ///< the name in scenarios
  std::string meaning; ///< one line
  conduct_kind kind = conduct_kind::honest;
  /// An attack that random swarms may have: honest members withstand it, and check all of it.
  bool for_chaos = false;
  /// The attack changes labels, so the workload has to have some.
  bool changes_labels = false;
  /// The attack changes values, so the workload has to have some.
  bool changes_values = false;
  /// An attack of a data shard (`data.conduct`). Peers cannot make it.
  bool of_shards = false;
  /// Makes one object for each incarnation of a host. `on` outlives the object and provides random
  /// streams.
  std::function<std::shared_ptr<conduct>(host& on, const conduct_options& how)> make{};
};

definition_list<conduct_definition>& conducts();

/// True if the conduct is an attack on the swarm.
bool is_attack(const conduct_options& how);

/// The conduct of this name for a host. Requires: the name is known.
std::shared_ptr<conduct> make_conduct(const conduct_options& how, host& on);
std::shared_ptr<conduct> make_conduct(std::string_view name, host& on);

} // namespace shoal::actors
