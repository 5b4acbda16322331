# Compiler flags shared by every target. Numerics depend on them: no fused multiply-add unless written, no fast-math.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")

add_library(lockstep_flags INTERFACE)
# Users of an installed Lockstep get the first line only: the rules of arithmetic, which inline functions depend on too.
target_compile_options(lockstep_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fPIC -ffp-contract=off -fno-fast-math>
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wold-style-cast
  -Wfloat-equal>>
  # GCC 12 sees c10::SmallVector as uninitialized at -O2.
  $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>>
  $<BUILD_INTERFACE:$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${LOCKSTEP_WERROR}>>:-Werror>>
  $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>>)
target_include_directories(lockstep_flags INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(lockstep_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
  # The shared sanitizer library would be the caller of dlopen(), and the executable's rpath would not count.
  if(LOCKSTEP_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_link_options(lockstep_flags INTERFACE -static-libasan)
  endif()
endif()

find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${LOCKSTEP_CCACHE})
endif()
find_program(LOCKSTEP_MOLD mold)
if(LOCKSTEP_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(LOCKSTEP_CUDA)
  include(LockstepCuda)
endif()
