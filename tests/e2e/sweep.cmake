# Sweeps: grids of runs as processes.
shoal_add_test(NAME test_e2e_sweep TIMEOUT 300
  SOURCES sweep_test.cpp support/program.cpp
  LIBS nlohmann_json::nlohmann_json fmt::fmt)
target_compile_definitions(test_e2e_sweep PRIVATE "SHOAL_PROGRAM=\"$<TARGET_FILE:shoal>\"")
