#include "fuzz/checks/program_checks.h"

#include "fuzz/programs/program_run.h"
#include "fuzz/trials/random_program.h"

namespace lockstep::fuzz {
namespace {

constexpr int kMostSteps = 40;

}  // namespace

Checks program_checks() {
  using enum lockstep::Numerics;
  return {{"programs/writes", [] { testing::a_program_gives_one_devices_values(kNative, kMostSteps); }},
          {"programs/gradients", [] { a_program_gives_one_devices_gradients(false); }},
          {"programs/canonical_writes", [] { testing::a_program_gives_one_devices_values(kCanonical, kMostSteps); }},
          {"programs/canonical_gradients", [] { a_program_gives_one_devices_gradients(true); }}};
}

}  // namespace lockstep::fuzz
