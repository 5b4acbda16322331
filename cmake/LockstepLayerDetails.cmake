# What single folders of layers.txt need beyond their links, and the bundles that programs and other projects link.
# The wheel's fmt formats every message (core/formatting.cpp compiles it); nothing of LibTorch itself is linked by core.
target_include_directories(lockstep_core SYSTEM PUBLIC $<BUILD_INTERFACE:${LibTorch_ROOT}/include>)
target_link_libraries(lockstep_core_digest PUBLIC PkgConfig::XXHASH)
target_link_libraries(lockstep_runtime_transport_rendezvous PRIVATE OpenSSL::Crypto)
# c10d's header of Gloo names Gloo's own, which the wheel lacks.
target_include_directories(lockstep_runtime_transport_process_group SYSTEM PRIVATE ${GLOO_INCLUDE_DIR})
target_compile_definitions(lockstep_runtime_transport_process_group PRIVATE USE_C10D_GLOO)
target_link_libraries(lockstep_replay_hdf5 PUBLIC PkgConfig::HDF5)
target_link_libraries(lockstep_replay_sandbox PRIVATE PkgConfig::SECCOMP)
target_link_libraries(lockstep_replay_store PUBLIC Threads::Threads PRIVATE nlohmann_json::nlohmann_json)
target_link_libraries(lockstep_replay_view PRIVATE nlohmann_json::nlohmann_json)
target_link_libraries(lockstep_replay_op_case PRIVATE nlohmann_json::nlohmann_json)
target_link_libraries(lockstep_trainer_job PRIVATE tomlplusplus::tomlplusplus nlohmann_json::nlohmann_json)
target_link_libraries(lockstep_trainer_forecast PRIVATE tomlplusplus::tomlplusplus)
target_link_libraries(lockstep_trainer_launch PRIVATE nlohmann_json::nlohmann_json)
target_link_libraries(lockstep_trainer_profile PRIVATE nlohmann_json::nlohmann_json)
target_link_libraries(lockstep_trainer_data PRIVATE nlohmann_json::nlohmann_json)
target_link_libraries(lockstep_trainer_checkpoint PRIVATE nlohmann_json::nlohmann_json)
target_link_libraries(lockstep_fuzz_cases PUBLIC RapidCheck::rapidcheck)
target_link_libraries(lockstep_fuzz_search PUBLIC nlohmann_json::nlohmann_json)
target_link_libraries(lockstep_fuzz_shrink PRIVATE nlohmann_json::nlohmann_json)
if(LOCKSTEP_CUDA)
  target_link_libraries(lockstep_runtime_transport_device PRIVATE $<BUILD_INTERFACE:CUDA::nccl> $<BUILD_INTERFACE:CUDA::cudart>)
endif()

# Whoever links the ops of tensors on a mesh gets the file that a World finds them by (dispatch/backend.cpp).
target_link_options(lockstep_runtime_dispatch INTERFACE LINKER:-u,lockstep_backend_is_known)

# The inner loops live on the vectoriser. The options only say that nobody looks at errno or floating-point traps. Source
# properties belong to a directory; the libraries are this one's.
file(GLOB_RECURSE _loops CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/kernels/*_loops.cpp)
set_source_files_properties(${_loops} ${CMAKE_SOURCE_DIR}/rng/fill.cpp PROPERTIES
  COMPILE_OPTIONS "-O3;-fno-math-errno;-fno-trapping-math")
# For plug-ins: headers alone, as the command that loads them has the rest.
add_library(lockstep_plugin INTERFACE)
add_library(Lockstep::plugin ALIAS lockstep_plugin)
set_target_properties(lockstep_plugin PROPERTIES EXPORT_NAME plugin)
target_link_libraries(lockstep_plugin INTERFACE lockstep_flags LibTorch::cpu)
list(APPEND LOCKSTEP_LAYERS plugin)
target_link_libraries(lockstep_trainer_plugin PRIVATE ${CMAKE_DL_LIBS})
# Without LibTorch: what `lockstep` answers from at once.
lockstep_bundle(kernels runtime_kernels_self_test runtime_kernels_speed)
lockstep_bundle(connections runtime_transport_flight runtime_transport_rendezvous)
lockstep_bundle(recordings replay_store replay_view)
lockstep_bundle(trainer_files trainer_job trainer_pipeline_kinds trainer_pipeline_pictures trainer_data trainer_checkpoint trainer_identity)
lockstep_bundle(runtime runtime_dispatch runtime_planning_rules runtime_transfer runtime_transport_device runtime_transport_process_group runtime_transport_streams)
lockstep_bundle(replay replay_play replay_op_case replay_capture)
lockstep_bundle(trainer trainer_plugin trainer_forecast trainer_generate trainer_loop trainer_dry_run trainer_mutation_trials runtime)
