# The pure flow model: max-min sharing and flows over time. Needs no CAF and no actors.
add_library(shoal_flows STATIC
  ${CMAKE_CURRENT_LIST_DIR}/cut.cpp
  ${CMAKE_CURRENT_LIST_DIR}/flow_network.cpp
  ${CMAKE_CURRENT_LIST_DIR}/max_min.cpp
  ${CMAKE_CURRENT_LIST_DIR}/max_min_reference.cpp
  ${CMAKE_CURRENT_LIST_DIR}/path_quality.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tcp.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transport.cpp)
target_compile_features(shoal_flows PUBLIC cxx_std_20)
target_link_libraries(shoal_flows PUBLIC shoal_base)
