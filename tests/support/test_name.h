#pragma once
#include <gtest/gtest.h>

#include <cctype>

#include "fuzz/cases/op_cases.h"

namespace lockstep::testing {

/// The op's name with letters, digits and underscores only.
inline std::string test_name(const ::testing::TestParamInfo<OpCase>& info) {
  auto name = info.param.op;
  for (auto& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace lockstep::testing
