#include "trainer/checkpoint/strict_json.h"

#include <limits>
#include <set>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

constexpr size_t kMaxDepth = 16;

/// Goes through a text for what the library lets through. A pass of its own: the library's parser takes time quadratic
/// in the length of a list if it is watched while it builds a document.
class Check final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Check(const std::string& path) : path_(path) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }

  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second)
      fail<FileError>("{}: damaged: the key {} occurs twice.", path_, nlohmann::json(name).dump());
    return true;
  }

  /// What is not JSON is left to who builds the document.
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  bool enter() {
    if (keys_.size() == kMaxDepth) fail<FileError>("{}: damaged: JSON nested deeper than {} levels.", path_, kMaxDepth);
    keys_.emplace_back();
    return true;
  }
  bool leave() { return keys_.pop_back(), true; }

  const std::string& path_;
  std::vector<std::set<std::string>> keys_;  ///< of every object and list that is open
};

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, const std::string& path) {
  try {
    Check check(path);
    nlohmann::json::sax_parse(text, &check);
    return nlohmann::json::parse(text);
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
