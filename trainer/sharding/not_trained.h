#pragma once
#include "trainer/sharding/mesh_hooks.h"

namespace lockstep::trainer {

/// What the hooks run in a scope is not trained.
class NotTrained {
 public:
  struct How {
    models::KeyValueCache* cache = nullptr;  ///< Hooks::cache()
    bool adapts = true;                      ///< Hooks::adapts()
  };
  explicit NotTrained(MeshHooks& hooks, How how) : hooks_(hooks) {
    hooks_.set_trains(false), hooks_.set_cache(how.cache), hooks_.set_adapts(how.adapts);
  }
  ~NotTrained() { hooks_.set_trains(true), hooks_.set_cache(nullptr), hooks_.set_adapts(true); }
  NotTrained(const NotTrained&) = delete;
  NotTrained& operator=(const NotTrained&) = delete;

 private:
  MeshHooks& hooks_;
};

}  // namespace lockstep::trainer
