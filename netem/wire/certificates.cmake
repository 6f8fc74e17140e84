# The moderator's and the nodes' keys and certificates. OpenSSL alone: no sockets, no CAF, no clock.
add_library(shoal_certificates STATIC
  ${CMAKE_CURRENT_LIST_DIR}/certificates.cpp
  ${CMAKE_CURRENT_LIST_DIR}/key_files.cpp
  ${CMAKE_CURRENT_LIST_DIR}/moderator.cpp
  ${CMAKE_CURRENT_LIST_DIR}/moderator_folder.cpp
  ${CMAKE_CURRENT_LIST_DIR}/node_keys.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pem.cpp
  ${CMAKE_CURRENT_LIST_DIR}/secret_text.cpp
  ${CMAKE_CURRENT_LIST_DIR}/signed_text.cpp
  ${CMAKE_CURRENT_LIST_DIR}/signing_key.cpp)
target_compile_features(shoal_certificates PUBLIC cxx_std_20)
target_link_libraries(shoal_certificates PUBLIC shoal_base PRIVATE shoal::openssl fmt::fmt)
