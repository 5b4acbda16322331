# _lockstep_headers(NAME LINK libraries... HEADERS headers...): a library that is nothing but a precompiled header.
function(_lockstep_headers name)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS;OPTIONS" ${ARGN})
  if(NOT TARGET ${name})
    file(WRITE ${CMAKE_BINARY_DIR}/${name}.cpp "")
    add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
    target_link_libraries(${name} PRIVATE lockstep_flags ${ARG_LINK})
    target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
    target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  endif()
endfunction()

set(_torch_headers <ATen/Functions.h> <ATen/TensorOperators.h> <ATen/core/dispatch/Dispatcher.h>
  <algorithm> <array> <functional> <map> <memory> <optional> <span> <string> <string_view> <unordered_map> <vector>)
set(_test_libraries GTest::gtest GTest::gmock RapidCheck::rapidcheck)
set(_test_headers <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h> <rapidcheck.h> <rapidcheck/gtest.h>)

# One precompiled header for every target that includes ATen (building it once costs 15 s, each file saves 5 s). What few
# files include, such as torch/library.h, is not in it: every file pays for its size.
function(lockstep_precompiled target)
  _lockstep_headers(lockstep_pch LINK LibTorch::cpu HEADERS ${_torch_headers})
  target_precompile_headers(${target} REUSE_FROM lockstep_pch)
endfunction()

# Tests are compiled for the compiler's speed. GCC 12 warns of impossible bounds in string concatenation (its bug 105329).
set(_test_options -O0 $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow>)
function(lockstep_precompiled_test target torch)
  target_compile_options(${target} PRIVATE ${_test_options})
  if(torch)
    _lockstep_headers(lockstep_torch_test_pch LINK LibTorch::cpu ${_test_libraries} OPTIONS ${_test_options}
      HEADERS ${_torch_headers} ${_test_headers})
    target_precompile_headers(${target} REUSE_FROM lockstep_torch_test_pch)
  else()
    _lockstep_headers(lockstep_test_pch LINK Lockstep::core ${_test_libraries} OPTIONS ${_test_options}
      HEADERS ${_test_headers})
    target_precompile_headers(${target} REUSE_FROM lockstep_test_pch)
  endif()
endfunction()

# lockstep_tests(folder [TORCH] [OPTIMIZED] DEPENDS ...): every *_test.cpp of tests/<folder> and below in one binary, found by globbing.
function(lockstep_tests folder)
  cmake_parse_arguments(ARG "TORCH;OPTIMIZED" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name ${folder})
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE lockstep_flags ${ARG_DEPENDS} ${_test_libraries} GTest::gtest_main)
  target_compile_definitions(test_${name} PRIVATE LOCKSTEP_SOURCE_DIR="${CMAKE_SOURCE_DIR}" LOCKSTEP_BINARY="$<TARGET_FILE:lockstep>")
  if(ARG_TORCH)
    target_link_libraries(test_${name} PRIVATE LibTorch::cpu)
  endif()
  if(NOT ARG_OPTIMIZED)
    lockstep_precompiled_test(test_${name} ${ARG_TORCH})
  endif()
  add_test(NAME ${folder} COMMAND test_${name} --gtest_output=json:${CMAKE_BINARY_DIR}/results/${name}.json --gtest_brief=1)
  set_tests_properties(${folder} PROPERTIES ENVIRONMENT "OMP_NUM_THREADS=1")
endfunction()
