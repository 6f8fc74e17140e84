# The tests of links, for tests/netem/CMakeLists.txt. Only socket_pipe_test.cpp opens sockets.
shoal_add_test(NAME test_wire
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/clean_text_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fault_record_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/control_requests_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/dialler_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/end_to_end_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/frame_stream_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/handshake_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/host_link_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/host_state_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/host_state_relay_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/link_frames_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/link_list_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/message_frames_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/pacer_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/plain_words_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/relays_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/revocation_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/socket_pipe_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/striped_pipe_test.cpp
  LIBS shoal_wire shoal_certificates shoal::openssl)
