# The tests that hold in both worlds, for tests/e2e/CMakeLists.txt. They are a binary of their own, because
# ThreadSanitizer runs it.
set(SHOAL_WORLDS_TESTS
  replay_test.cpp
  support/program.cpp
  support/swarm.cpp
  threads_test.cpp
  worlds_test.cpp)
if(TARGET shoal_learn)
  list(APPEND SHOAL_WORLDS_TESTS emulated_training_test.cpp)
endif()
# On the wall clock, so not side by side: two of them would make each other late.
shoal_add_test(NAME test_worlds SERIAL TIMEOUT 300
  LIBS shoal_scenarios nlohmann_json::nlohmann_json fmt::fmt SOURCES ${SHOAL_WORLDS_TESTS})
target_compile_definitions(test_worlds PRIVATE "SHOAL_PROGRAM=\"$<TARGET_FILE:shoal>\"")
