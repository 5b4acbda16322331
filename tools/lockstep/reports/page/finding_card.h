#pragma once
#include <string>
#include <string_view>

#include "tools/lockstep/reports/verify/verify_page.h"

namespace lockstep::tool {

/// What a finding says: what differs, who is to blame, how it looks, what has been ruled out, and the next command.
/// `number`: of the finding on its page, from 1.
std::string finding_card(const PageFinding& finding, const std::string& mesh, size_t number);

/// "linear", "reduce_scatter on dp_shard", "the start of the step": who is to blame, in a few words; not escaped.
std::string blamed_text(const PageFinding& finding);

}  // namespace lockstep::tool
