# LibTorch from the PyPI wheel: targets LibTorch::cpu and, when asked for, LibTorch::cuda.
#
# The wheel's own TorchConfig.cmake is not used: it pulls in libtorch_cuda and wants every CUDA library installed.
# Set LOCKSTEP_TORCH_DIR to the torch folder of an installation to override the tree's virtual environment.
set(LOCKSTEP_TORCH_DIR "" CACHE PATH "torch folder of a LibTorch 2.11 installation")
file(GLOB _torch_candidates ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
find_path(LibTorch_ROOT NAMES include/ATen/ATen.h
  HINTS ${LOCKSTEP_TORCH_DIR} ${_torch_candidates} $ENV{VIRTUAL_ENV}/lib/python3.11/site-packages/torch NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_ROOT
  REASON_FAILURE_MESSAGE "run 'make setup', or set LOCKSTEP_TORCH_DIR to the torch folder of torch 2.11.0")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  add_library(LibTorch::cpu INTERFACE IMPORTED GLOBAL)
  set_target_properties(LibTorch::cpu PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_ROOT}/include;${LibTorch_ROOT}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
    INTERFACE_LINK_LIBRARIES "${LibTorch_ROOT}/lib/libtorch_cpu.so;${LibTorch_ROOT}/lib/libc10.so;${LibTorch_ROOT}/lib/libgomp.so.1"
    INTERFACE_LINK_OPTIONS "LINKER:-rpath,${LibTorch_ROOT}/lib")
endif()
