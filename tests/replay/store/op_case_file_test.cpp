// What the description in a case's file may be: anything else is an error that names the file, before anything is run.
#include <gtest/gtest.h>

#include "replay/store/op_case.h"
#include "replay/store/recording_file.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::message_of;

/// What read_case() says of a file with this description; FILE stands for its path.
std::string refusal_of(const std::string& description) {
  const TemporaryFolder folder;
  StepRecording file;
  file.complete = false;
  file.job = description;
  const auto bytes = to_file(file);
  const auto path = folder.write("case.h5", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto message = message_of<FileError>([&] { read_case(path); });
  if (message.starts_with(path)) message.replace(0, path.size(), "FILE");
  return message;
}

std::string description(const std::string& id, const std::string& more = "") {
  return R"({"kind": "case 1", "id": ")" + id +
         R"(", "op": "aten::neg", "overload": "", "mesh": "tp=2", "numerics": "native", "domain": "native", )" + more +
         R"("arguments": []})";
}

TEST(CaseFile, OfAWholeDescriptionIsRead) {
  EXPECT_EQ(refusal_of(description("step 1, init, neg #0")), "no such error");
  EXPECT_EQ(refusal_of(description("step 1", R"("rounded_levels": 6, )")), "no such error");
}

TEST(CaseFile, NestsNoDeeperThanArguments) {
  const std::string open(30'000, '['), close(30'000, ']');
  EXPECT_EQ(refusal_of(R"({"kind": "case 1", "arguments": )" + open + close + "}"),
            "FILE is no case: its description is nested deeper than 16");
}

TEST(CaseFile, HoldsNothingThatCommandsATerminal) {
  EXPECT_EQ(refusal_of(description(R"(\u001b[2J)")), "FILE is no case: id has a control character in it");
}

TEST(CaseFile, HasLevelsThatAreNumbers) {
  EXPECT_EQ(refusal_of(description("step 1", R"("rounded_levels": 7, )")),
            "FILE is no case: rounded_levels 7, expected 0 to 6");
  EXPECT_EQ(refusal_of(description("step 1", R"("rounded_levels": "x", )")),
            "FILE is no case: rounded_levels \"x\", expected 0 to 6");
}

}  // namespace
}  // namespace lockstep::replay
