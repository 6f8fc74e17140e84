# The tests of scenarios/observe, for tests/scenarios/CMakeLists.txt.
set(SHOAL_OBSERVE_TESTS
  ${CMAKE_CURRENT_LIST_DIR}/observe/case_book_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/epoch_table_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/event_log_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/guard_book_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/history_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/metrics_server_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/metrics_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/node_report_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/peer_table_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/progress_checks_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/round_checks_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/rounds_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/run_directory_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/run_observer_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/run_observers_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/sample_book_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/observe/summary_test.cpp)
set(SHOAL_OBSERVE_TEST_LIBS shoal_observe fmt::fmt nlohmann_json::nlohmann_json)
