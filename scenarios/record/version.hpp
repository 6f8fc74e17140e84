// The program's version, which `shoal --version` and run.yaml show. project() in the top
// CMakeLists.txt defines it.
#pragma once

#include <string_view>

namespace shoal::scenarios {

/// The version as text: '0.1.0'.
std::string_view version() noexcept;

} // namespace shoal::scenarios
