#pragma once
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "tests/tools/run_lockstep.h"

namespace lockstep {

/// What `lockstep ARGUMENTS` says of what is wrong, in one line behind "lockstep: ", and its exit code.
struct BadCall {
  const char* arguments;
  int code;
  const char* message;
};

inline void expect_one_line_each(std::span<const BadCall> calls) {
  for (const auto& bad : calls) {
    const auto run = run_lockstep(bad.arguments);
    EXPECT_EQ(run.code, bad.code) << bad.arguments;
    EXPECT_EQ(run.err, std::string("lockstep: ") + bad.message + "\n") << bad.arguments;
    EXPECT_EQ(run.out, "") << bad.arguments;
  }
}

}  // namespace lockstep
