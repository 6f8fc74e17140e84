// All conducts of this program, by name: the honest one, and bugs and attacks that a test or a
// scenario gives to hosts.
#pragma once

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
  bug, ///< `shoal chaos --mutants` has to find it
  attack,
};

struct conduct_definition {
  std::string name;    ///< as scenarios write it
  std::string meaning; ///< one line
  conduct_kind kind = conduct_kind::honest;
  /// One object for each incarnation of a host; `on` outlives it, and has random streams for it.
  std::function<std::shared_ptr<conduct>(host& on)> make;
};

definition_list<conduct_definition>& conducts();

/// The conduct of this name for a host. Requires: there is one.
std::shared_ptr<conduct> make_conduct(std::string_view name, host& on);

} // namespace shoal::actors
