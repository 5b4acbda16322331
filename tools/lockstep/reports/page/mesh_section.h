#pragma once
#include <string>

#include "tools/lockstep/reports/verify/verify_page.h"

namespace lockstep::tool {

/// All meshes beside one another: verdict, differences, bytes, time, memory.
std::string meshes_table(const VerifyPage& page);

/// Each mesh on its own, to be unfolded: differences by step, and what is sent.
std::string mesh_sections(const VerifyPage& page);

}  // namespace lockstep::tool
