# Runs read from what their hosts wrote, compared, and watched by Prometheus.
shoal_add_test(NAME test_e2e_compare TIMEOUT 300
  SOURCES nodes_test.cpp support/program.cpp support/swarm.cpp
  LIBS shoal_compare shoal_scenarios shoal_page nlohmann_json::nlohmann_json fmt::fmt)
target_compile_definitions(test_e2e_compare PRIVATE "SHOAL_PROGRAM=\"$<TARGET_FILE:shoal>\"")
shoal_add_script_test(NAME "prometheus: the example configuration and the alerts are right"
  COMMAND "${CMAKE_CURRENT_LIST_DIR}/prometheus/files_test")
shoal_add_script_test(NAME "prometheus: scrapes a run, and has its series"
  COMMAND "${CMAKE_CURRENT_LIST_DIR}/prometheus/scrape_test" "$<TARGET_FILE:shoal>")
