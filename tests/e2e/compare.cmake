# Runs read from what their hosts wrote, compared, and watched by Prometheus.
shoal_add_test(NAME test_e2e_compare TIMEOUT 300
  SOURCES nodes_test.cpp support/program.cpp support/swarm.cpp
  LIBS shoal_scenarios nlohmann_json::nlohmann_json fmt::fmt)
target_compile_definitions(test_e2e_compare PRIVATE "SHOAL_PROGRAM=\"$<TARGET_FILE:shoal>\"")
