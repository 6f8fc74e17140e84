// The built-in roles, a line each. NAME_role() stands in scenarios/roles/NAME.cpp.
#include "scenarios/roles/role.hpp"

#define SHOAL_ROLES(X)                                                                             \
  X(trainer)                                                                                       \
  X(auxiliary)                                                                                     \
  X(stage)                                                                                         \
  X(expert)

namespace shoal::scenarios {

#define SHOAL_DECLARE(name) role_definition name##_role();
SHOAL_ROLES(SHOAL_DECLARE)
#undef SHOAL_DECLARE

registry<role_definition>& roles() {
#define SHOAL_MAKE(name) name##_role(),
  static registry<role_definition> all{SHOAL_ROLES(SHOAL_MAKE)};
#undef SHOAL_MAKE
  return all;
}

kind_list role_kinds() {
  return roles().kinds();
}

role_choice::role_choice() : choice(roles().standard()) {}
const role_definition& role_choice::definition() const {
  return static_cast<const role_definition&>(*kind);
}

} // namespace shoal::scenarios
