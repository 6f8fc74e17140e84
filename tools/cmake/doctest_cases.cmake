# Read by ctest, not by the build: makes each doctest case of a binary its own ctest entry. ctest asks
# the binary for its cases when it starts, and again only after the binary has changed. So the build does not
# start every test binary once, which takes long with libtorch or with a sanitizer.

function(_shoal_write_cases binary prefix properties cases_file)
  execute_process(
    COMMAND "${binary}" --list-test-cases --no-version --no-colors=true
    OUTPUT_FILE "${cases_file}.list" ERROR_VARIABLE errors RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    # This entry fails in the same way, so that ctest shows the reason.
    file(WRITE "${cases_file}" "add_test([==[${prefix}: the binary lists its cases]==] [==[${binary}]==] --list-test-cases)\n")
    return()
  endif()
  file(READ "${cases_file}.list" lines)
  # Brackets and semicolons break CMake's lists, so other characters replace them in a list.
  string(ASCII 1 open)
  string(ASCII 2 close)
  string(ASCII 3 semicolon)
  string(REPLACE "[" "${open}" lines "${lines}")
  string(REPLACE "]" "${close}" lines "${lines}")
  string(REPLACE ";" "${semicolon}" lines "${lines}")
  string(REPLACE "\n" ";" lines "${lines}")
  set(script "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^${open}doctest${close}" OR line MATCHES "^===+$" OR line STREQUAL "")
      continue()
    endif()
    # Doctest splits its filter at commas; `?` stands for any one character.
    string(REGEX REPLACE "[,\"\\${open}${close}${semicolon}]" "?" filter "${line}")
    string(APPEND script
      "add_test([==[${prefix}: ${line}]==] [==[${binary}]==] [==[--test-case=${filter}]==] --no-version)\n"
      "set_tests_properties([==[${prefix}: ${line}]==] PROPERTIES ${properties})\n")
  endforeach()
  string(REPLACE "${open}" "[" script "${script}")
  string(REPLACE "${close}" "]" script "${script}")
  string(REPLACE "${semicolon}" ";" script "${script}")
  file(WRITE "${cases_file}" "${script}")
endfunction()

macro(shoal_doctest_cases binary prefix properties)
  set(_cases_file "${binary}.cases.cmake")
  if(NOT EXISTS "${binary}")
    add_test("${prefix}: the test binary is built" "${binary}")
  else()
    if("${binary}" IS_NEWER_THAN "${_cases_file}" OR
       "${CMAKE_CURRENT_LIST_FILE}" IS_NEWER_THAN "${_cases_file}")
      _shoal_write_cases("${binary}" "${prefix}" "${properties}" "${_cases_file}")
    endif()
    include("${_cases_file}")
  endif()
endmacro()
