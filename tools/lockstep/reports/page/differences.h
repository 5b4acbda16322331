#pragma once
#include <string>

/// Relative differences on a page of verification.
namespace lockstep::tool {

/// "0", "4.8e-01", "not finite".
std::string relative_text(double relative);

/// Whether a difference is worse; one that is not a number is the worst.
bool is_worse(double difference, double than);

}  // namespace lockstep::tool
