// The commit of the sources from which the program was built. tools/cmake/build_identity.cmake
// writes the source file behind this header. A new commit recompiles only that file.
#pragma once

namespace shoal::tools {

/// '9f2c28a', '9f2c28a-dirty' with changes since that commit; empty outside a git checkout.
const char* build_identity() noexcept;

} // namespace shoal::tools
