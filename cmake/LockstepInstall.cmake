# cmake --install: the command, the libraries, their headers (include/lockstep, the same paths as in the tree) and a
# package for other projects, of which examples/embed is one:
#   find_package(Lockstep REQUIRED)
#   target_link_libraries(mine PRIVATE Lockstep::runtime)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)
set(_headers ${CMAKE_INSTALL_INCLUDEDIR}/lockstep)
set(_exported ${LOCKSTEP_LAYERS})
list(TRANSFORM _exported PREPEND lockstep_)
list(APPEND _exported lockstep_flags)
set_target_properties(lockstep_flags PROPERTIES EXPORT_NAME flags)
target_include_directories(lockstep_flags INTERFACE $<INSTALL_INTERFACE:${_headers}>)
target_compile_features(lockstep_flags INTERFACE $<INSTALL_INTERFACE:cxx_std_20>)

install(TARGETS ${_exported} EXPORT LockstepTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS lockstep lockstep_engine RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY tools/data DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep FILES_MATCHING PATTERN "*.py" PATTERN "requirements.txt")
foreach(folder core rng runtime consistency replay models trainer fuzz)
  install(DIRECTORY ${folder} DESTINATION ${_headers} FILES_MATCHING PATTERN "*.h")
endforeach()

configure_package_config_file(cmake/LockstepConfig.cmake.in ${CMAKE_BINARY_DIR}/LockstepConfig.cmake
  INSTALL_DESTINATION ${_package} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/LockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/LockstepConfig.cmake ${CMAKE_BINARY_DIR}/LockstepConfigVersion.cmake
  cmake/FindLibTorch.cmake cmake/FindRapidCheck.cmake DESTINATION ${_package})
install(EXPORT LockstepTargets NAMESPACE Lockstep:: DESTINATION ${_package})

if(LOCKSTEP_TESTS)
  add_test(NAME examples COMMAND ${CMAKE_SOURCE_DIR}/tools/test_examples ${CMAKE_BINARY_DIR})
  set_tests_properties(examples PROPERTIES ENVIRONMENT "OMP_NUM_THREADS=1;CXX=${CMAKE_CXX_COMPILER}")
endif()
