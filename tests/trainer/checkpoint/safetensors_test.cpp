#include "trainer/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::trainer {
namespace {

/// A file with this header and this many bytes of data, whatever they mean.
std::string raw_file(const std::string& header, size_t data, uint64_t length) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + header + std::string(data, 'x');
}
std::string raw_file(const std::string& header, size_t data) { return raw_file(header, data, header.size()); }

/// What comes after the file's name in the error; empty when the file opens.
std::string problem(const std::string& content) {
  const TemporaryFolder folder;
  const auto path = folder.write("x.safetensors", content);
  try {
    const SafetensorsFile file(path);
    return "";
  } catch (const FileError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    return message.substr(path.size() + 2);
  }
}

TEST(Safetensors, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  const std::vector<uint8_t> mask = {1, 0, 1};
  const std::vector<TensorBytes> tensors = {{"weight", "F32", {2, 3}, std::as_bytes(std::span(weight))},
                                            {"mask", "BOOL", {3}, std::as_bytes(std::span(mask))},
                                            {"empty", "F64", {0, 7}, {}},
                                            {"scalar", "U8", {}, std::as_bytes(std::span(mask)).first(1)}};
  const auto path = folder.file("x.safetensors");
  write_safetensors(path, tensors);
  const SafetensorsFile file(path);
  ASSERT_EQ(file.entries().size(), 4U);
  for (const auto& tensor : tensors) {
    const auto& entry = file.entries().at(tensor.name);
    EXPECT_EQ(entry.dtype, tensor.dtype);
    EXPECT_EQ(entry.shape, tensor.shape);
    std::vector<std::byte> bytes(static_cast<size_t>(entry.size));
    file.read(entry, bytes);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), tensor.bytes.begin(), tensor.bytes.end())) << tensor.name;
  }
}

TEST(Safetensors, TheBytesAreTheFormats) {
  const TemporaryFolder folder;
  const std::byte value{42};
  write_safetensors(folder.file("x"), std::vector<TensorBytes>{{"a", "U8", {1}, {&value, 1}}});
  const std::string header = R"({"a":{"data_offsets":[0,1],"dtype":"U8","shape":[1]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(file_content(folder.file("x")), raw_file(padded, 0) + "*");
}

TEST(Safetensors, AcceptsForeignFiles) {
  EXPECT_EQ(problem(raw_file(
                R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}  )", 4)),
            "");
  EXPECT_EQ(problem(raw_file("{}", 0)), "");
}

TEST(Safetensors, NamesEveryKindOfDamage) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_EQ(problem(raw_file(good, 8)), "");
  EXPECT_EQ(problem(""), "damaged: 0 bytes are no safetensors file.");
  EXPECT_EQ(problem("1234567"), "damaged: 7 bytes are no safetensors file.");
  EXPECT_EQ(problem(std::string(8, '\0')), "damaged: the header does not start with '{'.");
  EXPECT_EQ(problem(raw_file(good, 7)), "truncated: 7 bytes of tensors, the header describes 8.");
  EXPECT_EQ(problem(raw_file(good, 9)), "damaged: 1 bytes behind the last tensor.");
  EXPECT_EQ(problem(raw_file("[]", 0)), "damaged: the header does not start with '{'.");
  EXPECT_EQ(problem(raw_file("{\"a\":", 0)), "damaged: not valid JSON at byte 6.");
  EXPECT_EQ(problem(raw_file("{\"a\":1}", 0)), "damaged: an object expected at /a.");
  EXPECT_EQ(problem(raw_file("{}", 0, 3)), "damaged: a header of 3 bytes in a file of 10 bytes.");
  EXPECT_EQ(problem(raw_file("{}", 0, std::numeric_limits<uint64_t>::max())),
            "damaged: a header of 18446744073709551615 bytes in a file of 10 bytes.");
}

TEST(Safetensors, RefusesTensorsThatMakeNoSense) {
  const auto entry = [](const char* dtype, const char* shape, const char* offsets, size_t data = 8) {
    return problem(
        raw_file(fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets), data));
  };
  EXPECT_EQ(entry("\"F31\"", "[2]", "[0,8]"), "damaged: a known type expected at /a/dtype.");
  EXPECT_EQ(entry("\"F32\"", "[3]", "[0,8]"),
            "damaged: the size that dtype and shape give expected at /a/data_offsets.");
  EXPECT_EQ(entry("\"F32\"", "[-2]", "[0,8]"), "damaged: an integer of at least 0 expected at /a/shape/0.");
  EXPECT_EQ(entry("\"F32\"", "[2.0]", "[0,8]"), "damaged: an integer of at least 0 expected at /a/shape/0.");
  EXPECT_EQ(entry("\"F32\"", "[4611686018427387904,4]", "[0,8]"),
            "damaged: the size that dtype and shape give expected at /a/data_offsets.");
  EXPECT_EQ(entry("\"F32\"", "[2]", "[8,0]"), "damaged: begin and end expected at /a/data_offsets.");
  EXPECT_EQ(entry("\"F32\"", "[2]", "[0]"), "damaged: begin and end expected at /a/data_offsets.");
  EXPECT_EQ(entry("\"F32\"", "[2]", "[0,9223372036854775807]"),
            "truncated: 8 bytes of tensors, the header describes 9223372036854775807.");
  EXPECT_EQ(entry("\"U8\"", "[4]", "[4,8]").substr(0, 32), "damaged: hole or overlap at byte");
}

TEST(Safetensors, RefusesOverlapsAndDuplicates) {
  EXPECT_EQ(
      problem(
          raw_file(
              R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
              6))
          .substr(0, 32),
      "damaged: hole or overlap at byte");
  EXPECT_EQ(
      problem(raw_file(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          1)),
      "damaged: the key \"a\" occurs twice.");
  EXPECT_EQ(problem(raw_file(R"({"a":)" + std::string(40, '[') + std::string(40, ']') + "}", 0)),
            "damaged: JSON nested deeper than 16 levels.");
}

TEST(Safetensors, AFileThatCannotBeWrittenIsAFileError) {
  EXPECT_THROW(write_safetensors("/nonexistent/x.safetensors", {}), FileError);
}

TEST(ElementCount, IsMinusOneWhereItDoesNotFit) {
  const auto count = [](std::vector<int64_t> shape) { return element_count(shape); };
  EXPECT_EQ(count({}), 1);
  EXPECT_EQ(count({3, 0, 5}), 0);
  EXPECT_EQ(count({3, -1}), -1);
  EXPECT_EQ(count({int64_t{1} << 40, int64_t{1} << 40}), -1);
}

}  // namespace
}  // namespace lockstep::trainer
