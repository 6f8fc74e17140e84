# Precompiled headers: most of a source's compile time is the same few headers, read again. There are three
# sets: `std` (the standard library, fmt), `caf` (the same, and CAF's core), and `json` (std, and nlohmann's). Each is compiled once.
#
# The users of `json` read scenarios and the command line, plan, compare runs and show them. They are compiled at -Og, since
# optimizing their templates takes longer than they ever run. A set and its users need the same -O.
#
# CLI11 is in no set. Its header defines objects that every source compiles again, for 2.5 s; a set would make all of its users do so.

function(_shoal_precompiled name)
  set(stub "${CMAKE_CURRENT_BINARY_DIR}/precompiled_${name}.cpp")
  file(GENERATE OUTPUT "${stub}" CONTENT "")
  add_library(shoal_precompiled_${name} OBJECT "${stub}")
  target_link_libraries(shoal_precompiled_${name} PRIVATE ${ARGN})
endfunction()

set(SHOAL_PRECOMPILED_STD <algorithm> <array> <chrono> <cstdint> <deque> <filesystem> <functional> <map> <memory> <mutex> <optional> <set> <span>
  <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
_shoal_precompiled(std fmt::fmt)
target_precompile_headers(shoal_precompiled_std PRIVATE ${SHOAL_PRECOMPILED_STD})
_shoal_precompiled(json fmt::fmt nlohmann_json::nlohmann_json)
target_precompile_headers(shoal_precompiled_json PRIVATE ${SHOAL_PRECOMPILED_STD} <nlohmann/json.hpp>)
set(SHOAL_JSON_OPTIONS $<$<CONFIG:Release>:-Og>)
target_compile_options(shoal_precompiled_json PRIVATE ${SHOAL_JSON_OPTIONS})
_shoal_precompiled(caf fmt::fmt shoal::caf)
target_precompile_headers(shoal_precompiled_caf PRIVATE ${SHOAL_PRECOMPILED_STD} <caf/actor.hpp> <caf/actor_system.hpp> <caf/event_based_actor.hpp>
  <caf/message.hpp> <caf/send.hpp>)

# shoal_precompile(TARGET std|json|caf): the target's sources use that set.
function(shoal_precompile target name)
  if(TARGET ${target})
    # Without the macros of fmt's target the compiler refuses the set.
    target_link_libraries(${target} PRIVATE fmt::fmt)
    target_precompile_headers(${target} REUSE_FROM shoal_precompiled_${name})
    if(name STREQUAL json)
      target_compile_options(${target} PRIVATE ${SHOAL_JSON_OPTIONS})
    endif()
  endif()
endfunction()

# shoal_optimized_first(TARGET): a function of a header that was not inlined stands in many objects, and the linker takes the
# first one. With the objects of these libraries first, that is the one of -O2.
function(shoal_optimized_first target)
  foreach(library actors base decoder flows kernels learn netem observe record scenarios text wire world)
    if(TARGET shoal_${library})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:shoal_${library}>)
    endif()
  endforeach()
endfunction()
