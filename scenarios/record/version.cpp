#include "scenarios/record/version.hpp"

namespace shoal::scenarios {

std::string_view version() noexcept {
  return SHOAL_VERSION;
}

} // namespace shoal::scenarios
