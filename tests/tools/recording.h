#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/digest/digest.h"
#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {

/// A small job, and the folder that its steps are recorded into.
class Recording : public ::testing::Test {
 protected:
  lockstep::Run train(const std::string& more, const char* launcher = "") {
    return run_lockstep(std::string(launcher) + "train " + job_ + " -q --record " + traces_ + " " + more);
  }
  lockstep::Run replay(const std::string& more) {
    return run_lockstep("replay " + traces_ + " " + more + " --json " + folder_.file("result.json"));
  }
  nlohmann::json result() const { return nlohmann::json::parse(file_content(folder_.file("result.json"))); }

  /// Changes one byte in the middle of a step's file.
  void damage(const std::string& name) const {
    auto content = file_content(traces_ + "/" + name);
    content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
    std::filesystem::remove(traces_ + "/" + name);
    std::ofstream(traces_ + "/" + name, std::ios::binary) << content;
  }

  /// Replaces a text in the file of rank 0's first step by one as long, and its digests in the first line of the index.
  void rewrite(const std::string& from, const std::string& to) const {
    auto content = file_content(traces_ + "/rank0-step1.h5"), index = file_content(traces_ + "/rank0.index");
    const auto before = digest(content).text();
    ASSERT_NE(content.find(from), std::string::npos);
    content.replace(content.find(from), from.size(), to);
    index.replace(index.find(before), before.size(), digest(content).text());
    const std::string check = " check ";
    const auto place = index.find(check);
    index.replace(place + check.size(), before.size(), digest(index.substr(0, place)).text());
    folder_.write("traces/rank0-step1.h5", content);
    folder_.write("traces/rank0.index", index);
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_), traces_ = folder_.file("traces");
};

}  // namespace lockstep
