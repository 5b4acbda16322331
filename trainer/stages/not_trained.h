#pragma once
#include "trainer/stages/stages.h"

namespace lockstep::trainer {

/// What the stages run in a scope is not trained.
class NotTrained {
 public:
  struct How {
    models::KeyValueCache* cache = nullptr;  ///< Hooks::cache()
    bool adapts = true;                      ///< Hooks::adapts()
  };
  NotTrained(Stages& stages, How how) : stages_(stages) { stages_.set_training(false, how.cache, how.adapts); }
  ~NotTrained() { stages_.set_training(true, nullptr, true); }
  NotTrained(const NotTrained&) = delete;
  NotTrained& operator=(const NotTrained&) = delete;

 private:
  Stages& stages_;
};

}  // namespace lockstep::trainer
