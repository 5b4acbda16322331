#include "tools/lockstep/commands.h"

namespace lockstep::tool {

ExitCode run_verify(const VerifyOptions&, const trainer::Job&, std::span<const trainer::MeshDegrees>) {
  fail<InternalError>("verify is not linked in yet");
}

}  // namespace lockstep::tool
