# One precompiled header for every target that includes ATen (building it once costs 20 s, each file saves 5 s).
function(lockstep_precompiled target)
  if(NOT TARGET lockstep_pch)
    file(WRITE ${CMAKE_BINARY_DIR}/lockstep_pch.cpp "")
    add_library(lockstep_pch OBJECT ${CMAKE_BINARY_DIR}/lockstep_pch.cpp)
    target_link_libraries(lockstep_pch PRIVATE lockstep_flags LibTorch::cpu)
    target_precompile_headers(lockstep_pch PRIVATE
      <ATen/Functions.h> <ATen/TensorOperators.h> <ATen/core/dispatch/Dispatcher.h> <torch/library.h>
      <torch/csrc/autograd/custom_function.h>
      <algorithm> <array> <functional> <map> <memory> <optional> <span> <string> <string_view> <unordered_map> <vector>)
  endif()
  target_precompile_headers(${target} REUSE_FROM lockstep_pch)
endfunction()

# lockstep_tests(folder DEPENDS ...): every *_test.cpp of tests/<folder> and below in one binary, found by globbing.
function(lockstep_tests folder)
  cmake_parse_arguments(ARG "TORCH" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name ${folder})
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE lockstep_flags ${ARG_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main RapidCheck::rapidcheck)
  target_compile_definitions(test_${name} PRIVATE LOCKSTEP_SOURCE_DIR="${CMAKE_SOURCE_DIR}" LOCKSTEP_BINARY="$<TARGET_FILE:lockstep>")
  # GCC 12 warns of impossible bounds in string concatenation (its bug 105329).
  target_compile_options(test_${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow>)
  if(ARG_TORCH)
    target_link_libraries(test_${name} PRIVATE LibTorch::cpu)
    lockstep_precompiled(test_${name})
  endif()
  add_test(NAME ${folder} COMMAND test_${name} --gtest_output=json:${CMAKE_BINARY_DIR}/results/${name}.json --gtest_brief=1)
  set_tests_properties(${folder} PROPERTIES ENVIRONMENT "OMP_NUM_THREADS=1")
endfunction()
