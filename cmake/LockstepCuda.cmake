# nvcc for the .cu files of the tree: sm_90, the same floating-point rules as the CPU's code.
if(NOT CMAKE_CUDA_COMPILER)
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda/bin REQUIRED)
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90)
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one runtime in the process: LibTorch's wheel brings the same library
enable_language(CUDA)
# CMake 3.25 does not know that nvcc 13 has C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA_STANDARD 20)

find_package(CUDAToolkit REQUIRED)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
add_library(CUDA::nccl SHARED IMPORTED GLOBAL)
set_target_properties(CUDA::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR};${CUDAToolkit_INCLUDE_DIRS}")

# No contraction but written fma, no approximate division or square root, subnormal numbers kept.
add_library(lockstep_cuda_flags INTERFACE)
target_compile_options(lockstep_cuda_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -prec-div=true -prec-sqrt=true -ftz=false -Xcompiler=-fPIC,-ffp-contract=off>)
