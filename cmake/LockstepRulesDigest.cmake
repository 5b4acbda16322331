# The digest of all that rules are made of, compiled in: what a soak of the rules says holds for the code that it ran on.
# Included, it adds the source ${LOCKSTEP_RULES_DIGEST} to be compiled; run as a script (FILES, OUTPUT), it writes it.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "")
  separate_arguments(FILES)
  foreach(file ${FILES})
    file(SHA256 ${file} digest)
    string(APPEND text "${digest}\n")
  endforeach()
  string(SHA256 digest "${text}")
  string(SUBSTRING ${digest} 0 16 digest)
  file(WRITE ${OUTPUT} "#include \"tools/lockstep/reports/fuzz/checked_rules.h\"\n\nnamespace lockstep::tool {\n\nstd::string rules_digest() { return \"${digest}\"; }\n\n}  // namespace lockstep::tool\n")
  return()
endif()

file(GLOB _rules CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/planning/*.cpp ${CMAKE_SOURCE_DIR}/runtime/planning/*.h
  ${CMAKE_SOURCE_DIR}/runtime/planning/rules/*.cpp ${CMAKE_SOURCE_DIR}/runtime/planning/rules/*.h
  ${CMAKE_SOURCE_DIR}/runtime/planning/draws/*.cpp ${CMAKE_SOURCE_DIR}/runtime/planning/draws/*.h
  ${CMAKE_SOURCE_DIR}/runtime/own_ops/*.cpp ${CMAKE_SOURCE_DIR}/runtime/own_ops/*.h)
list(SORT _rules)
list(JOIN _rules " " _rules_text)
set(LOCKSTEP_RULES_DIGEST ${CMAKE_BINARY_DIR}/rules_digest.cpp)
add_custom_command(OUTPUT ${LOCKSTEP_RULES_DIGEST} DEPENDS ${_rules} ${CMAKE_CURRENT_LIST_FILE}
  COMMAND ${CMAKE_COMMAND} "-DFILES=${_rules_text}" -DOUTPUT=${LOCKSTEP_RULES_DIGEST} -P ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
