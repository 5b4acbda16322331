#include "tools/lockstep/commands.h"

namespace lockstep::tool {

ExitCode run_train(const TrainOptions&, const trainer::Job&) { fail<InternalError>("train is not linked in yet"); }

}  // namespace lockstep::tool
