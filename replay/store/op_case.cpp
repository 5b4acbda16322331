#include "replay/store/op_case.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/random_access_file.h"
#include "replay/store/recording_file.h"

namespace lockstep::replay {
namespace {

constexpr const char* kKind = "case 1";

/// Fields of the description, besides the arguments.
constexpr struct {
  const char* name;
  std::string OpCase::*text;
} kFields[] = {{"id", &OpCase::id},
               {"op", &OpCase::op},
               {"overload", &OpCase::overload},
               {"mesh", &OpCase::mesh},
               {"numerics", &OpCase::numerics},
               {"domain", &OpCase::domain}};

Bytes read_file(const std::string& path) {
  const RandomAccessFile file(path);
  Bytes bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes);
  return bytes;
}

/// Deeper than any argument; what walks over JSON does so with a stack.
constexpr int kMaxDepth = 16;

nlohmann::ordered_json parse_description(const std::string& text, const std::string& path) {
  const auto check_depth = [&](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) {
    if (depth > kMaxDepth) fail<FileError>("{} is no case: its description is nested deeper than {}", path, kMaxDepth);
    return true;
  };
  return nlohmann::ordered_json::parse(text, check_depth);
}

/// It is printed as it is: nothing in it may command a terminal.
std::string printable(std::string text, const char* field, const std::string& path) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), is_control))
    fail<FileError>("{} is no case: {} has a control character in it", path, field);
  return text;
}

/// Absent in cases that are older than it.
int64_t rounded_levels_of(const nlohmann::ordered_json& description, const std::string& path) {
  if (!description.contains("rounded_levels")) return 0;
  const auto& levels = description.at("rounded_levels");
  if (!levels.is_number_integer() || levels < 0 || levels > 6)
    fail<FileError>("{} is no case: rounded_levels {}, expected 0 to 6", path, levels.dump());
  return levels.get<int64_t>();
}

}  // namespace

Bytes to_file(const OpCase& one) {
  nlohmann::ordered_json description{{"kind", kKind}};
  for (const auto& field : kFields) description[field.name] = one.*field.text;
  description["rounded_levels"] = one.rounded_levels;
  description["arguments"] = nlohmann::ordered_json::parse(one.arguments);
  StepRecording file;
  file.complete = false;
  file.reason = one.finding;
  file.job = description.dump();
  file.has_state = true;
  file.state = one.tensors;
  return to_file(file);
}

OpCase read_case(const std::string& path) {
  auto file = from_file(read_file(path), path);
  try {
    const auto description = parse_description(file.job, path);
    if (description.at("kind") != kKind) fail<FileError>("{} is no case: its kind is another", path);
    OpCase one;
    for (const auto& field : kFields) one.*field.text = printable(description.at(field.name), field.name, path);
    one.rounded_levels = rounded_levels_of(description, path);
    one.arguments = description.at("arguments").dump();
    one.finding = std::move(file.reason);
    one.tensors = std::move(file.state);
    return one;
  } catch (const nlohmann::json::exception& error) {
    fail<FileError>("{} is no case (lockstep verify writes them): {}", path, error.what());
  }
}

}  // namespace lockstep::replay
