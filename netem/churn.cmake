# Sessions of hosts, drawn or from a trace. Needs no CAF and no actors.
add_library(shoal_churn STATIC
  ${CMAKE_CURRENT_LIST_DIR}/churn.cpp
  ${CMAKE_CURRENT_LIST_DIR}/distributions.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lifetime_fit.cpp
  ${CMAKE_CURRENT_LIST_DIR}/line_trace.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_counts.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_events.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_formats.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_fta.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_peers.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_simgrid.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_statistics.cpp)
target_compile_features(shoal_churn PUBLIC cxx_std_20)
target_link_libraries(shoal_churn PUBLIC shoal_base PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
