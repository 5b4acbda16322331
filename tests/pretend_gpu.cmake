# What needs a GPU, on one that host memory plays (support/gpu/pretend_gpu.cpp): its tests, and in pretend_gpu/ the commands,
# which tools/gpu_check is tried on.
add_library(pretend_gpu OBJECT support/gpu/pretend_gpu.cpp)
target_link_libraries(pretend_gpu PRIVATE lockstep_flags Lockstep::trainer)
lockstep_precompiled(pretend_gpu)

# The CUDA sources, compiled for the CPU; what a GPU cannot read at once, since it is misaligned, ends the program.
# Sanitizers do not follow stacks that take turns.
function(emulated_kernels name)
  foreach(source ${ARGN})
    get_filename_component(kernel ${source} NAME_WE)
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/emulated/${kernel}.cpp CONTENT "#include \"${source}\"\n")
    list(APPEND emulated ${CMAKE_CURRENT_BINARY_DIR}/emulated/${kernel}.cpp)
  endforeach()
  add_library(${name} OBJECT ${emulated})
  target_link_libraries(${name} PRIVATE lockstep_flags Lockstep::core_digest Lockstep::rng)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND NOT LOCKSTEP_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=alignment -fsanitize-trap=alignment)
  endif()
  target_include_directories(${name} BEFORE PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/support/gpu/emulated_cuda)
endfunction()
file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/kernels/cuda/*.cu
     ${CMAKE_SOURCE_DIR}/runtime/kernels/cuda/canonical/*.cu)
emulated_kernels(emulated_op_kernels ${kernels})
target_compile_definitions(emulated_op_kernels PRIVATE LOCKSTEP_MAX_GRID=3)
emulated_kernels(emulated_kernels ${CMAKE_SOURCE_DIR}/rng/cuda_fill.cu ${CMAKE_SOURCE_DIR}/replay/capture/cuda_queue.cu)

add_executable(test_pretend_gpu support/gpu/pretend_gpu_test.cpp rng/cuda_fill_test.cpp 
  trainer/gpu/training_test.cpp trainer/gpu/device_reader_test.cpp trainer/gpu/replay_device_test.cpp
  trainer/gpu/run_check_test.cpp trainer/gpu/range_checks_test.cpp trainer/gpu/float8_products_test.cpp trainer/gpu/offload_test.cpp support/gpu/host_waits_test.cpp)
target_link_libraries(test_pretend_gpu PRIVATE pretend_gpu lockstep_flags Lockstep::trainer
  GTest::gtest GTest::gmock GTest::gtest_main RapidCheck::rapidcheck)
if(LOCKSTEP_SANITIZE)
  target_sources(test_pretend_gpu PRIVATE support/gpu/pretend_kernels.cpp)
else()
  target_sources(test_pretend_gpu PRIVATE trainer/gpu/kernels_test.cpp trainer/gpu/digest_test.cpp
    trainer/gpu/canonical_rows_test.cpp trainer/gpu/canonical_sums_test.cpp trainer/gpu/canonical_products_test.cpp
    trainer/gpu/canonical_low_precision_test.cpp trainer/gpu/canonical_attention_test.cpp trainer/gpu/canonical_training_test.cpp)
  target_link_libraries(test_pretend_gpu PRIVATE emulated_kernels emulated_op_kernels)
endif()
target_compile_definitions(test_pretend_gpu PRIVATE LOCKSTEP_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
lockstep_precompiled_test(test_pretend_gpu TRUE)
add_test(NAME pretend_gpu COMMAND test_pretend_gpu --gtest_output=json:${CMAKE_BINARY_DIR}/results/pretend_gpu.json
  --gtest_brief=1)

set(tool ${CMAKE_SOURCE_DIR}/tools/lockstep)
add_executable(pretend_gpu_front ${tool}/main.cpp ${tool}/engine_handover.cpp)
target_link_libraries(pretend_gpu_front PRIVATE lockstep_command_line)
target_link_options(pretend_gpu_front PRIVATE "LINKER:-rpath,${LibTorch_ROOT}/lib")
add_executable(pretend_gpu_engine ${tool}/main.cpp support/gpu/pretend_kernels.cpp)
target_link_libraries(pretend_gpu_engine PRIVATE pretend_gpu lockstep_engine_commands)
if(NOT LOCKSTEP_SANITIZE)
  target_link_libraries(pretend_gpu_engine PRIVATE emulated_op_kernels)
endif()
lockstep_precompiled(pretend_gpu_engine)
set_target_properties(pretend_gpu_front PROPERTIES OUTPUT_NAME lockstep)
set_target_properties(pretend_gpu_engine PROPERTIES OUTPUT_NAME lockstep-engine)
set_target_properties(pretend_gpu_front pretend_gpu_engine PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/pretend_gpu)
# In its folder, as the parts of tools/gpu_check look for it.
set_target_properties(test_pretend_gpu PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/pretend_gpu/tests)

set_tests_properties(pretend_gpu PROPERTIES ENVIRONMENT "OMP_NUM_THREADS=1")
if(NOT LOCKSTEP_SANITIZE)
  add_test(NAME gpu_check COMMAND ${CMAKE_SOURCE_DIR}/tools/gpu/try ${CMAKE_BINARY_DIR})
  set_tests_properties(gpu_check PROPERTIES ENVIRONMENT "OMP_NUM_THREADS=1")
endif()
