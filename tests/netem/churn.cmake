# The tests of churn and traces, for tests/netem/CMakeLists.txt.
set(SHOAL_CHURN_TESTS
  ${CMAKE_CURRENT_LIST_DIR}/line_trace_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/churn_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/distributions_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_formats_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace_test.cpp)
