#pragma once
#include <string>
#include <string_view>

#include "tools/lockstep/console.h"

namespace lockstep::tool {

/// A line of the op table on the terminal. `lockstep` prints the heading, before LibTorch is loaded; the engine prints
/// the rows. `forms` is the last column, of any width.
struct RulesLine {
  std::string_view op, family, dims, linearity, traits, canonical, checked;
  std::string forms;
};

inline const RulesLine kRulesHeading{"op", "family", "dims", "linearity", "traits", "canonical", "checked", "forms"};

inline void print_rules_line(const RulesLine& line) {
  print_out("{:<26} {:<14} {:<42} {:<9} {:<7} {:<9} {:>8}{}{}\n", line.op, line.family, line.dims, line.linearity,
            line.traits, line.canonical, line.checked, line.forms.empty() ? "" : "  ", line.forms);
}

}  // namespace lockstep::tool
