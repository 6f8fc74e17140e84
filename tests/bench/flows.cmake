# The flow model alone: `cmake --build DIR --target flow_bench`. No part of the default build.
add_executable(flow_bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/flow_bench.cpp)
target_link_libraries(flow_bench PRIVATE shoal_flows)
