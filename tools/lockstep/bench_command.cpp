#include "tools/lockstep/commands.h"

namespace lockstep::tool {

ExitCode run_bench(const BenchOptions&) { fail<InternalError>("bench is not linked in yet"); }

}  // namespace lockstep::tool
