#pragma once
#include "fuzz/search/check.h"
#include "fuzz/trials/rule_properties.h"

namespace lockstep::fuzz {

/// Every row of the op table, and what programs call above it: "mm/candidates", "mm/layouts", ... `native` are the
/// rules of the checks that compare with LibTorch, `canonical` those of the checks that compare bits with one rank;
/// the built-in ones where they are null.
Checks op_checks(testing::Rules native = {}, testing::Rules canonical = {});

/// The same of one row, a user's own for example: by what its case says of it (OpCase::traits). Bits are compared with
/// one rank's where `canonical` are given, or the row itself says what canonical numerics makes of it.
Checks checks_of_row(const testing::OpCase& row, testing::Rules native, testing::Rules canonical = {});

}  // namespace lockstep::fuzz
