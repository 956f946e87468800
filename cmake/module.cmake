# cairn_module(NAME [DEPS target ...] [TEST_DEPS target ...])
#
# Makes the library cairn_NAME of all *.cc files of the current folder, and NAME_test of all its *_test.cc files. "/" in a
# module's name becomes "_". Sources are found by globbing: a new file needs no line anywhere.
function(cairn_module name)
  cmake_parse_arguments(ARG "" "" "DEPS;TEST_DEPS;EXTRA_SOURCES" ${ARGN})
  string(REPLACE "/" "_" flat "${name}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  # A folder with a list of its own is a module of its own.
  file(GLOB_RECURSE inner CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt")
  foreach(inner_list ${inner})
    get_filename_component(folder "${inner_list}" DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${folder}/")
  endforeach()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|_main|_bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  if(sources OR ARG_EXTRA_SOURCES)
    add_library(cairn_${flat} STATIC ${sources} ${ARG_EXTRA_SOURCES})
    cairn_precompiled(cairn_${flat})
    set(scope PUBLIC)
  else()
    add_library(cairn_${flat} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(cairn_${flat} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>"
    "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>")
  target_link_libraries(cairn_${flat} ${scope} ${ARG_DEPS})

  if(tests AND GTest_FOUND)
    add_executable(${flat}_test ${tests})
    target_link_libraries(${flat}_test PRIVATE cairn_${flat} ${ARG_TEST_DEPS} GTest::gmock GTest::gtest_main)
    set_target_properties(${flat}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    cairn_precompiled(${flat}_test)
    add_test(NAME ${flat} COMMAND ${flat}_test)
    set(timeout 600)
    if(CAIRN_SANITIZE)
      set(timeout 3600)  # everything takes ten times as long
    endif()
    set_tests_properties(${flat} PROPERTIES TIMEOUT ${timeout} LABELS unit)
  endif()
endfunction()

# cairn_program(NAME SOURCE [DEPS target ...]): an executable in the build directory's root.
function(cairn_program name source)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()

# All generated sources and nothing else.
add_custom_target(generated)

# cairn_proto(OUT_VARIABLE FILE.proto ...): generated sources for a module's EXTRA_SOURCES. Headers are included as
# "MODULE/FILE.pb.h".
function(cairn_proto out)
  set(generated)
  foreach(proto ${ARGN})
    file(RELATIVE_PATH relative "${PROJECT_SOURCE_DIR}/src" "${CMAKE_CURRENT_SOURCE_DIR}/${proto}")
    string(REGEX REPLACE "\\.proto$" "" stem "${relative}")
    set(base "${PROJECT_BINARY_DIR}/generated/${stem}")
    add_custom_command(OUTPUT ${base}.pb.cc ${base}.pb.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/generated
      COMMAND protobuf::protoc --cpp_out=${PROJECT_BINARY_DIR}/generated -I${PROJECT_SOURCE_DIR}/src
              ${PROJECT_SOURCE_DIR}/src/${relative}
      DEPENDS ${PROJECT_SOURCE_DIR}/src/${relative} VERBATIM)
    # Generated code is not held to our warnings.
    set_source_files_properties(${base}.pb.cc PROPERTIES COMPILE_OPTIONS "-w" SKIP_PRECOMPILE_HEADERS ON)
    list(APPEND generated ${base}.pb.cc)
  endforeach()
  set(${out} ${generated} PARENT_SCOPE)
  # So that the checks can have the headers without building what the module depends on.
  add_custom_target(${out}_sources DEPENDS ${generated})
  add_dependencies(generated ${out}_sources)
endfunction()
