#include "core/files/proc_value.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

TEST(ProcValue, IsWhatFollowsTheKeyOnItsFirstLine) {
  const TemporaryFolder folder;
  const auto path = folder.write("info", "model\t\t: 17\nmodel name\t: A B\nempty\t:\nmodel name\t: C\nno colon\n");
  EXPECT_EQ(proc_value(path.c_str(), "model name"), "A B");
  EXPECT_EQ(proc_value(path.c_str(), "model\t"), "17");
  EXPECT_EQ(proc_value(path.c_str(), "empty"), "");
  EXPECT_EQ(proc_value(path.c_str(), "no colon"), "");
  EXPECT_EQ(proc_value("/nowhere/at/all", "model name"), "");
}

TEST(ProcValue, NamesThisProcessor) {
  EXPECT_NE(processor_name(), "unknown");
  EXPECT_NE(processor_name().find(proc_value("/proc/cpuinfo", "vendor_id")), std::string::npos);
}

}  // namespace
}  // namespace lockstep
