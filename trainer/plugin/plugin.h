#pragma once
#include <torch/version.h>

#include "models/module.h"
#include "trainer/data/dataset.h"
#include "trainer/job/job.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/schedule.h"
#include "trainer/step/model_registry.h"

/// What a plug-in is built with: a shared library that adds to what jobs may name (docs/plugins.md).
///
///   std::unique_ptr<lockstep::models::Model> make_mine(const lockstep::trainer::Job& job) { ... }
///
///   LOCKSTEP_PLUGIN(plugin) { plugin.model({"mine", "what it is"}, make_mine); }
namespace lockstep::trainer {

/// What a plug-in adds to. Names and texts are kept as they are: literals. BadInput for a name that is there.
class Plugin {
 public:
  /// For model.name.
  void model(Choice name, ModelBuilder builder);
  /// For training.dataset and validation.dataset.
  void dataset(Choice name, DatasetBuilder builder);
  /// For optimizer.name.
  void optimizer(Choice name, OptimizerBuilder builder);
  /// For lr_scheduler.decay_type.
  void schedule(Choice name, DecayShape shape);
};

}  // namespace lockstep::trainer

/// Raised with every change of what plug-ins include: one that was built before is refused.
#define LOCKSTEP_PLUGIN_INTERFACE "1"

/// What stands in the file of a plug-in, so that one of another Lockstep is refused before any of it runs.
#define LOCKSTEP_PLUGIN_MARK "LOCKSTEP-PLUGIN-MARK "
#define LOCKSTEP_PLUGIN_VERSION "interface " LOCKSTEP_PLUGIN_INTERFACE ", LibTorch " TORCH_VERSION

/// Once in a plug-in, with the body of a function that is called once, before the job is read. `name` is the Plugin.
#define LOCKSTEP_PLUGIN(name)                                                                                   \
  static void lockstep_fill_plugin(::lockstep::trainer::Plugin&);                                               \
  extern "C" __attribute__((visibility("default"))) const char lockstep_plugin_mark[];                          \
  extern "C" const char lockstep_plugin_mark[] = LOCKSTEP_PLUGIN_MARK LOCKSTEP_PLUGIN_VERSION;                  \
  extern "C" __attribute__((visibility("default"))) void lockstep_plugin(::lockstep::trainer::Plugin& plugin) { \
    lockstep_fill_plugin(plugin);                                                                               \
  }                                                                                                             \
  static void lockstep_fill_plugin(::lockstep::trainer::Plugin& name)
