// Of which sources this program was made. The only file that is compiled again when they have
// another commit is the one behind this header, which tools/cmake/build_identity.cmake writes.
#pragma once

namespace shoal::tools {

/// '9f2c28a', '9f2c28a-dirty' with changes since that commit; empty outside a git checkout.
const char* build_identity() noexcept;

} // namespace shoal::tools
