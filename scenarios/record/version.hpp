// The program's version, as `shoal --version` and run.yaml have it. Its one place is project() in
// the top CMakeLists.txt.
#pragma once

#include <string_view>

namespace shoal::scenarios {

/// '0.1.0'.
std::string_view version() noexcept;

} // namespace shoal::scenarios
