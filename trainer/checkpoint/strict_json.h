#pragma once
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

/// Reading JSON files without trust: everything unexpected is a FileError that names the file and the place in it.
namespace lockstep::trainer {

/// The document; duplicate keys and nesting deeper than 16 levels are errors too.
nlohmann::json parse_strict_json(std::string_view text, const std::string& path);

/// A value inside a document, with its place for messages. Borrows the document and the path.
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, const std::string& path, std::string place = "")
      : value_(value), path_(path), place_(std::move(place)) {}

  /// Fails unless this is an object with exactly these keys.
  const JsonPlace& require_keys(std::initializer_list<std::string_view> keys) const;
  JsonPlace operator[](std::string_view key) const;
  /// The elements of an array.
  std::vector<JsonPlace> elements() const;
  std::string text() const;
  /// An integer of at least 0.
  int64_t count() const;
  std::vector<int64_t> counts() const;

  [[noreturn]] void fail_expected(std::string_view what) const;

 private:
  const nlohmann::json& value_;
  const std::string& path_;
  std::string place_;
};

}  // namespace lockstep::trainer
