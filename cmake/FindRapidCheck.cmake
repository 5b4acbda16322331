# RapidCheck as Debian ships it (no CMake config of its own): target RapidCheck::rapidcheck.
find_path(RapidCheck_INCLUDE_DIR rapidcheck.h)
find_library(RapidCheck_LIBRARY rapidcheck)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(RapidCheck REQUIRED_VARS RapidCheck_LIBRARY RapidCheck_INCLUDE_DIR)
if(RapidCheck_FOUND AND NOT TARGET RapidCheck::rapidcheck)
  add_library(RapidCheck::rapidcheck UNKNOWN IMPORTED)
  set_target_properties(RapidCheck::rapidcheck PROPERTIES
    IMPORTED_LOCATION ${RapidCheck_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${RapidCheck_INCLUDE_DIR})
endif()
