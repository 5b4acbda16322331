#include "tools/lockstep/commands.h"

namespace lockstep::tool {

ExitCode run_rules(const RulesOptions&) { fail<InternalError>("rules is not linked in yet"); }

}  // namespace lockstep::tool
