#include "trainer/data/data_sources.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::trainer {
namespace {

std::string text_of(const TemporaryFolder& folder, const std::vector<std::string>& entries) try {
  std::vector<std::string> full;
  for (const auto& entry : entries) full.push_back(folder.file(entry));
  std::string text;
  for (const auto& source : data_sources(full)) {
    text += std::to_string(source.weight) + "(";
    for (const auto& file : source.files) text += " " + file.substr(folder.path().size() + 1);
    text += " )";
  }
  return text;
} catch (const BadInput& error) {
  std::string text = error.what();
  for (auto at = text.find(folder.path() + "/"); at != text.npos; at = text.find(folder.path() + "/"))
    text.erase(at, folder.path().size() + 1);
  return text;
}

class DataSources : public ::testing::Test {
 protected:
  DataSources() {
    for (const char* name : {"b.bin", "a.bin", "a.json", "c.txt", "odd:7"}) folder_.write(name, "x");
  }
  std::string of(const std::vector<std::string>& entries) const { return text_of(folder_, entries); }
  TemporaryFolder folder_;
};

TEST_F(DataSources, FilesGlobsAndFoldersAreOneSource) {
  EXPECT_EQ(of({"b.bin"}), "1( b.bin )");
  EXPECT_EQ(of({"b.bin", "c.txt"}), "1( b.bin c.txt )");
  EXPECT_EQ(of({"*.bin"}), "1( a.bin b.bin )");
  EXPECT_EQ(of({"?.txt", "[ab].bin"}), "1( c.txt [ab].bin )");  // only * and ? make a glob
  EXPECT_EQ(of({""}), "1( a.bin b.bin )");
  EXPECT_EQ(of({"missing.bin"}), "1( missing.bin )");
}

TEST_F(DataSources, WeightsBecomeSmallWholeNumbers) {
  EXPECT_EQ(of({"a.bin:0.7", "b.bin:0.3"}), "7( a.bin )3( b.bin )");
  EXPECT_EQ(of({"a.bin:4", "b.bin:2"}), "2( a.bin )1( b.bin )");
  EXPECT_EQ(of({"*.bin:1", "c.txt:0.000001"}), "1000000( a.bin b.bin )1( c.txt )");
}

TEST_F(DataSources, WhatIsWrongIsNamed) {
  EXPECT_EQ(of({}), "training.dataset_path is not set; it names the data to train on.");
  EXPECT_EQ(of({"*.tok"}), "training.dataset_path \"*.tok\": there is no such file of tokens.");
  EXPECT_EQ(of({"a.bin:2", "b.bin"}),
            "training.dataset_path: 1 of 2 entries have a weight; give all of them one (\"PATH:WEIGHT\").");
  for (const char* weight : {"0", "-1", "0.0", "1e3", "1.", ".5", "0.1234567", "12345678", "+1"})
    EXPECT_EQ(of({std::string("a.bin:") + weight}), std::string("training.dataset_path \"a.bin:") + weight +
                                                        "\": the weight " + weight +
                                                        " must be a decimal number above 0, of at most six places.");
  EXPECT_EQ(of({"odd:7"}), "training.dataset_path \"odd:7\" is a file, and odd with a weight; rename it.");
  EXPECT_EQ(of({"a.bin", "*.bin"}),
            "training.dataset_path \"*.bin\": a.bin occurs twice; give it a larger weight instead.");
  EXPECT_EQ(of({"a.bin:2", "b.bin:0.999999"}),
            "training.dataset_path: the weights are 2999999 parts of a whole, 1048576 are the most; choose rounder "
            "ones.");
}

}  // namespace
}  // namespace lockstep::trainer
