#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/lockstep/arguments.h"

/// What the command line's library cannot check by itself.
namespace lockstep::tool {

/// BadInput unless `name` is one of `names`, with the nearest. `what` is the kind of thing that it should name, in the
/// singular.
void require_known(const std::string& name, std::string_view what, const std::vector<std::string>& names);

/// "7", or "1..5" for all of these. BadInput, naming the option, for anything else and for more than 1000.
std::vector<uint64_t> seeds_of(const char* option, const std::string& text);

/// The same options. BadInput for names that nothing has and options that do not go together.
BenchOptions checked(const BenchOptions& bench);
MutateOptions checked(const MutateOptions& mutate);
FuzzOptions checked(const FuzzOptions& fuzz);
GenerateCommand checked(const GenerateCommand& generate);
ReplayOptions checked(const ReplayOptions& replay);

}  // namespace lockstep::tool
