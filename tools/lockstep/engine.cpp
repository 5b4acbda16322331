#include "tools/lockstep/commands.h"

namespace lockstep::tool {

const bool kIsFront = false;

}  // namespace lockstep::tool
