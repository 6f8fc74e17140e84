// The built-in programs, a line each. NAME_program() stands in scenarios/programs/, in the file of
// that program.
#include "scenarios/programs/program.hpp"

#include <algorithm>

#define SHOAL_PROGRAMS(X)                                                                          \
  X(training)                                                                                      \
  X(averaging_study)                                                                               \
  X(inference)                                                                                     \
  X(experts)                                                                                       \
  X(pipeline)                                                                                      \
  X(staleness_study)

namespace shoal::scenarios {

#define SHOAL_DECLARE(name) program_definition name##_program();
SHOAL_PROGRAMS(SHOAL_DECLARE)
#undef SHOAL_DECLARE

registry<program_definition>& programs() {
#define SHOAL_MAKE(name) name##_program(),
  static registry<program_definition> all{SHOAL_PROGRAMS(SHOAL_MAKE)};
#undef SHOAL_MAKE
  return all;
}

kind_list program_kinds() {
  return programs().kinds();
}

program_choice::program_choice() : choice(programs().standard()) {}
const program_definition& program_choice::definition() const {
  return static_cast<const program_definition&>(*kind);
}

bool program_choice::reads(std::string_view key) const {
  const auto& sections = definition().sections;
  return sections.empty() || key == name() ||
         std::find(sections.begin(), sections.end(), key) != sections.end();
}

} // namespace shoal::scenarios
