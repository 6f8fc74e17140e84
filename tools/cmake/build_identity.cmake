# Writes the source file that names the built commit, and leaves a file that already names it unchanged.
#   cmake -D SOURCE=dir -D OUT=file -P build_identity.cmake
set(identity "")
if(EXISTS "${SOURCE}/.git")
  execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty
    OUTPUT_VARIABLE identity OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT identity MATCHES "^[A-Za-z0-9._/+-]+$")
    set(identity "")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUT}" @ONLY CONTENT [[
#include "tools/build_identity.hpp"

namespace shoal::tools {
const char* build_identity() noexcept { return "@identity@"; }
}  // namespace shoal::tools
]])
