# The tests of keys and certificates, for tests/netem/CMakeLists.txt.
shoal_add_test(NAME test_certificates
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/certificates_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/damaged_certificates_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/end_of_process_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/key_folders_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/secret_text_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/signed_text_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/signing_key_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tls_handshake_test.cpp
  LIBS shoal_certificates shoal::openssl fmt::fmt)
