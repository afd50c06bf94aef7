# SPDX-License-Identifier: Apache-2.0
# Three functions, one for each thing this project builds: a room of the agent, a provider, a test binary.

add_library(driftd_options INTERFACE)
target_compile_options(driftd_options INTERFACE -Wall -Wextra -Wpedantic -Wno-missing-field-initializers
                                                # false alarms of g++ 12: half of asio's coroutine frame inlined;
                                                # the inactive members of std::variant
                                                $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>
                                                -Wno-maybe-uninitialized
                                                $<$<BOOL:${DRIFTD_WERROR}>:-Werror>
                                                $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
                                                $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>
                                                -fstack-protector-strong)
target_link_options(driftd_options INTERFACE -Wl,-z,relro,-z,now)
if(DRIFTD_SANITIZE)
  target_compile_options(driftd_options INTERFACE -fsanitize=${DRIFTD_SANITIZE} -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer -g1)
  if(DRIFTD_SANITIZE STREQUAL thread)  # asio's fences under its strands; the sanitizer sees the atomics around them
    target_compile_options(driftd_options INTERFACE -Wno-tsan)
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/tsan.supp)
    file(READ ${CMAKE_SOURCE_DIR}/tests/tsan.supp DRIFTD_TSAN_SUPPRESSIONS)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/tsan_suppressions.cpp.in ${CMAKE_BINARY_DIR}/tsan_suppressions.cpp @ONLY)
    target_sources(driftd_options INTERFACE
      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_BINARY_DIR}/tsan_suppressions.cpp>
      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_SOURCE_DIR}/cmake/tsan_threads.cpp>)
    target_link_options(driftd_options INTERFACE
      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:LINKER:--export-dynamic-symbol=thrd_create,--export-dynamic-symbol=thrd_join>)
  endif()
  target_link_options(driftd_options INTERFACE -fsanitize=${DRIFTD_SANITIZE})
  target_sources(driftd_options INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_SOURCE_DIR}/cmake/sanitizer_options.cpp>)
endif()
find_program(DRIFTD_MOLD mold)
if(DRIFTD_MOLD)
  target_link_options(driftd_options INTERFACE -fuse-ld=mold)
endif()
find_program(DRIFTD_CCACHE ccache)
if(DRIFTD_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${DRIFTD_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DRIFTD_CCACHE})
endif()

function(driftd_unity target)
  if(DRIFTD_UNITY)  # a coroutine's frame of a file that is included seems to be seen by others
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${DRIFTD_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# driftd_room(store DEPS core proto LIBS SQLite::SQLite3): static library driftd_store of all *.cpp in this folder and
# in its FOLDERS.
# ALONE: files that are not compiled with others where DRIFTD_UNITY is on, as their names clash with those of another file.
# Built for size: the whole text of an agent counts as its memory (kernels map it in large folios), and these rooms wait for
# others most of the time. FAST: built for speed, where each record passes.
function(driftd_room name)
  cmake_parse_arguments(ARG "FAST" "" "DEPS;LIBS;EXCLUDE;ALONE;FOLDERS" ${ARGN})
  list(TRANSFORM ARG_FOLDERS REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/\\1/*.cpp")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${ARG_FOLDERS})
  foreach(excluded ${ARG_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${excluded})
  endforeach()
  add_library(driftd_${name} STATIC ${sources})
  driftd_unity(driftd_${name} ${ARG_ALONE})
  target_include_directories(driftd_${name} PUBLIC ${CMAKE_SOURCE_DIR}/agent)
  list(TRANSFORM ARG_DEPS PREPEND driftd_)
  target_link_libraries(driftd_${name} PUBLIC ${ARG_DEPS} PRIVATE driftd_options PUBLIC ${ARG_LIBS})
  if(NOT ARG_FAST)
    target_compile_options(driftd_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
  endif()
endfunction()

# driftd_provider(redis PURE info.cpp … LIBS PkgConfig::hiredis): providers/redis.so of all *.cpp in this folder, that exports
# driftd_provider_v1 and nothing else; schema.json beside it, when there is one, is compiled in as driftd_schema_json
# (generated schema_json.hpp). ALONE: as of a room. PURE: the files without I/O, a library driftd_redis_pure that unit tests link, too.
function(driftd_provider name)
  cmake_parse_arguments(ARG "" "" "PURE;LIBS;ALONE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(ARG_PURE)
    add_library(driftd_${name}_pure STATIC ${ARG_PURE})
    set_target_properties(driftd_${name}_pure PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_include_directories(driftd_${name}_pure PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/..)
    target_link_libraries(driftd_${name}_pure PUBLIC driftd_plugin_api ${ARG_LIBS} PRIVATE driftd_options)
    driftd_unity(driftd_${name}_pure ${ARG_ALONE})
    list(TRANSFORM ARG_PURE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM sources ${ARG_PURE})
    list(PREPEND ARG_LIBS driftd_${name}_pure)
  endif()
  add_library(driftd_provider_${name} MODULE ${sources})
  driftd_unity(driftd_provider_${name} ${ARG_ALONE})
  set_target_properties(driftd_provider_${name} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/providers
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/schema.json)
    driftd_embed(driftd_provider_${name} ${CMAKE_CURRENT_SOURCE_DIR}/schema.json driftd_schema_json)
  endif()
  target_link_options(driftd_provider_${name} PRIVATE
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/provider.map -Wl,--no-undefined -Wl,--exclude-libs,ALL)
  target_link_libraries(driftd_provider_${name} PRIVATE driftd_plugin_api driftd_options ${ARG_LIBS})
endfunction()

# driftd_generated(name files…): target `generated` makes these sources, too. It compiles nothing: clang-tidy needs no more.
function(driftd_generated name)
  add_custom_target(generated_${name} DEPENDS ${ARGN})
  add_dependencies(generated generated_${name})
endfunction()

# driftd_embed(target file symbol): header <symbol>.hpp with `inline constexpr std::string_view symbol`, made at build time.
function(driftd_embed target file symbol)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embed/${symbol}.hpp)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${file} -DOUT=${out} -DSYMBOL=${symbol} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  driftd_generated(${target}_${symbol} ${out})
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embed)
endfunction()

# driftd_tests(unit store DEPS store LIBS …): one GoogleTest binary of all *_test.cpp in this folder; each test is a ctest
# entry with the label. Target tests_<label> builds all binaries of a label. FIXTURES: what setup tests build
# or fetch for them. SERIAL: with nothing beside, for what is timed. TWO_CORES: tests whose name this regex finds count as
# two. ILL: its workers hold providers that a sanitizer is meant to find. Four files are compiled as one, because most of a
# test's compile time is the headers that all of them read. A release compiles them at -O1, any other build at -O0, because
# a sanitizer doubles the code that -O1 would optimise.
function(driftd_tests label name)
  cmake_parse_arguments(ARG "SERIAL;ILL" "TIMEOUT;TWO_CORES" "DEPS;LIBS;FIXTURES" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(DRIFTD_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(findings)
  if(DRIFTD_SANITIZE AND NOT ARG_ILL)  # of whatever process: what a test starts may be killed and started again without harm to it
    set(findings FAIL_REGULAR_EXPRESSION "(ERROR|WARNING): [A-Z][a-z]+Sanitizer: |: runtime error: ")
  endif()
  set(target ${label}_${name}_test)
  add_executable(${target} ${sources})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  target_compile_options(${target} PRIVATE $<IF:$<CONFIG:Release>,-O1,-O0>)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/agent ${CMAKE_SOURCE_DIR}/tests)
  list(TRANSFORM ARG_DEPS PREPEND driftd_)
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} ${ARG_LIBS} GTest::gmock_main driftd_options)
  if(NOT TARGET tests_${label})
    add_custom_target(tests_${label})
  endif()
  add_dependencies(tests_${label} ${target})
  # Only where they are used: a path on the command line keeps ccache from sharing objects between two checkouts.
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*.hpp)
  foreach(file ${files})
    file(STRINGS ${file} uses REGEX "DRIFTD_(SOURCE|BINARY)_DIR" LIMIT_COUNT 1)
    if(uses)
      target_compile_definitions(${target} PRIVATE DRIFTD_SOURCE_DIR="${CMAKE_SOURCE_DIR}" DRIFTD_BINARY_DIR="${CMAKE_BINARY_DIR}")
      break()
    endif()
  endforeach()
  include(GoogleTest)
  gtest_discover_tests(${target} TEST_PREFIX "${label}." DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${label} TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${ARG_SERIAL} ${findings})
  if(ARG_TWO_CORES)
    set(large ${CMAKE_CURRENT_BINARY_DIR}/${target}_two_cores.cmake)
    file(WRITE ${large} "foreach(name IN LISTS ${target}_TESTS)\n  if(name MATCHES \"${ARG_TWO_CORES}\")\n"
      "    set_tests_properties(\"\${name}\" PROPERTIES PROCESSORS 2)\n  endif()\nendforeach()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${large})
  endif()
  if(ARG_FIXTURES)  # a list cannot go through PROPERTIES: ctest reads this file after the tests were discovered
    set(required ${CMAKE_CURRENT_BINARY_DIR}/${target}_fixtures.cmake)
    file(WRITE ${required} "foreach(name IN LISTS ${target}_TESTS)\n"
      "  set_tests_properties(\"\${name}\" PROPERTIES FIXTURES_REQUIRED \"${ARG_FIXTURES}\")\nendforeach()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${required})
  endif()
endfunction()
