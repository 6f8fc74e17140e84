# The tests of links, for tests/netem/CMakeLists.txt. None of them opens a socket.
shoal_add_test(NAME test_wire
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/network_test.cpp
  LIBS shoal_wire)
