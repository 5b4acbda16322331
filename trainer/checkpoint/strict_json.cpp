#include "trainer/checkpoint/strict_json.h"

#include <limits>
#include <set>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

constexpr int kMaxDepth = 16;

using Event = nlohmann::json::parse_event_t;

/// Watches a parse for what the library lets through.
struct Watch {
  const std::string& path;
  std::vector<std::set<std::string>> keys = {};

  bool operator()(int depth, Event event, nlohmann::json& value) {
    if (depth > kMaxDepth) fail<FileError>("{}: damaged: JSON nested deeper than {} levels.", path, kMaxDepth);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second)
      fail<FileError>("{}: damaged: the key {} occurs twice.", path, value.dump());
    return true;
  }
};

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, const std::string& path) {
  try {
    return nlohmann::json::parse(text, Watch{path});
  } catch (const nlohmann::json::parse_error& error) {
    fail<FileError>("{}: damaged: not valid JSON at byte {}.", path, error.byte);
  } catch (const nlohmann::json::exception&) {
    fail<FileError>("{}: damaged: not valid JSON.", path);
  }
}

const JsonPlace& JsonPlace::require_keys(std::initializer_list<std::string_view> keys) const {
  if (!value_.is_object()) fail_expected("an object");
  for (const auto key : keys)
    if (!value_.contains(key)) fail_expected(fmt::format("the key \"{}\"", key));
  if (value_.size() != keys.size()) fail_expected(fmt::format("{} keys, not {},", keys.size(), value_.size()));
  return *this;
}

JsonPlace JsonPlace::operator[](std::string_view key) const {
  if (!value_.is_object() || !value_.contains(key)) fail_expected(fmt::format("the key \"{}\"", key));
  return {value_.at(std::string(key)), path_, fmt::format("{}/{}", place_, key)};
}

std::vector<JsonPlace> JsonPlace::elements() const {
  if (!value_.is_array()) fail_expected("a list");
  std::vector<JsonPlace> places;
  for (size_t i = 0; i < value_.size(); ++i) places.emplace_back(value_[i], path_, fmt::format("{}/{}", place_, i));
  return places;
}

std::string JsonPlace::text() const {
  if (!value_.is_string()) fail_expected("a string");
  return value_.get<std::string>();
}

int64_t JsonPlace::count() const {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value_.is_number_unsigned() || value_.get<uint64_t>() > kMax) fail_expected("an integer of at least 0");
  return value_.get<int64_t>();
}

std::vector<int64_t> JsonPlace::counts() const {
  std::vector<int64_t> counts;
  for (const auto& element : elements()) counts.push_back(element.count());
  return counts;
}

void JsonPlace::fail_expected(std::string_view what) const {
  fail<FileError>("{}: damaged: {} expected at {}.", path_, what, place_.empty() ? "the top" : place_);
}

}  // namespace lockstep::trainer
