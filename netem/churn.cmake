# When hosts come and go: drawn or from a trace. No CAF, no actors.
add_library(shoal_churn STATIC
  ${CMAKE_CURRENT_LIST_DIR}/churn.cpp
  ${CMAKE_CURRENT_LIST_DIR}/trace.cpp)
target_include_directories(shoal_churn PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_features(shoal_churn PUBLIC cxx_std_20)
target_link_libraries(shoal_churn PUBLIC shoal_base PRIVATE fmt::fmt)
