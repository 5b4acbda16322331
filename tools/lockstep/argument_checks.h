#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tools/lockstep/arguments.h"

/// What the command line's library cannot check by itself.
namespace lockstep::tool {

/// BadInput unless `name` is one of `names`, with the nearest. `what` is the kind of thing that it should name, in the
/// singular.
void require_known(const std::string& name, std::string_view what, const std::vector<std::string>& names);

/// The same options. BadInput for names that nothing has and options that do not go together.
BenchOptions checked(const BenchOptions& bench);
MutateOptions checked(const MutateOptions& mutate);
ReplayOptions checked(const ReplayOptions& replay);

}  // namespace lockstep::tool
