#include "fuzz/steps/step_checks.h"

#include "fuzz/steps/random_step.h"
#include "trainer/job/offered_names.h"

namespace lockstep::fuzz {

Checks step_checks() {
  Checks checks;
  for (const auto& model : trainer::kModelNames) {
    const std::string name(model.name);
    checks.push_back({"steps/" + name, [name] { a_step_equals_one_devices(name, true); }});
    checks.push_back({"steps/" + name + "_native", [name] { a_step_equals_one_devices(name, false); }});
  }
  return checks;
}

}  // namespace lockstep::fuzz
