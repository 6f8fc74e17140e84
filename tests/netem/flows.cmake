# The tests of the flow model, for tests/netem/CMakeLists.txt.
set(SHOAL_FLOW_TESTS
  ${CMAKE_CURRENT_LIST_DIR}/cut_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/flow_max_min_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/flow_network_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/path_quality_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transport_test.cpp)
