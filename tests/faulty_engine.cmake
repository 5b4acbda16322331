# The shipped `lockstep`, in a folder of its own beside an engine of the shipped objects and tools/planted_faults.cpp, which
# takes the place of five of their functions: by name, so that production code has no switch for it.
set(wrapped_rules _ZN8lockstep14built_in_rulesENS_8NumericsE)
set(wrapped_exchange
  _ZN8lockstep8exchangeENS_8ExchangeERKSt8functionIFvRKSt6vectorIS2_IS2_IN2at6TensorESaIS4_EESaIS6_EESaIS8_EEEE)
set(wrapped_one_result _ZN8lockstep14has_one_resultERNS_5WorldE)
set(wrapped_finish _ZN8lockstep15PendingExchange6finishEv)
set(wrapped_write
  _ZN8lockstep7trainer17write_safetensorsERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt4spanIKNS0_11TensorBytesELm18446744073709551615EE)
add_executable(faulty_engine ${CMAKE_SOURCE_DIR}/tools/lockstep/main.cpp tools/planted_faults.cpp)
target_link_libraries(faulty_engine PRIVATE lockstep_engine_commands)
target_compile_definitions(faulty_engine PRIVATE
  LOCKSTEP_RULES_SYMBOL="${wrapped_rules}" LOCKSTEP_EXCHANGE_SYMBOL="${wrapped_exchange}"
  LOCKSTEP_ONE_RESULT_SYMBOL="${wrapped_one_result}"
  LOCKSTEP_FINISH_SYMBOL="${wrapped_finish}" LOCKSTEP_WRITE_SYMBOL="${wrapped_write}")
target_link_options(faulty_engine PRIVATE LINKER:--wrap=${wrapped_rules} LINKER:--wrap=${wrapped_exchange}
  LINKER:--wrap=${wrapped_one_result}
  LINKER:--wrap=${wrapped_finish} LINKER:--wrap=${wrapped_write})
lockstep_precompiled(faulty_engine)
set_target_properties(faulty_engine PROPERTIES OUTPUT_NAME lockstep-engine
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/faulty)

# A copy, not a link: `lockstep` looks for its engine beside the file that it is.
set(faulty_front ${CMAKE_BINARY_DIR}/faulty/lockstep)
add_custom_command(OUTPUT ${faulty_front} DEPENDS lockstep
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/faulty
  COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:lockstep> ${faulty_front})
add_custom_target(faulty_front DEPENDS ${faulty_front})
add_dependencies(test_tools faulty_front faulty_engine)
target_compile_definitions(test_tools PRIVATE LOCKSTEP_FAULTY_BINARY="${faulty_front}")
