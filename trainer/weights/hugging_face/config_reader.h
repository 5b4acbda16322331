#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"

namespace lockstep::trainer {

/// A config.json, key by key. Borrows it. FileError for what is of another type than it must be, BadInput for what the
/// model here does not compute.
class ConfigReader {
 public:
  using Json = nlohmann::json;

  ConfigReader(const Json& json, const std::string& path) : json_(json), path_(path) {
    if (!json.is_object()) fail<FileError>("{}: an object was expected.", path);
  }

  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  double number(const char* key, double otherwise) const {
    const auto* value = find(key);
    if (!value) return otherwise;
    if (!value->is_number()) fail_type(key, "a number");
    return value->get<double>();
  }
  int64_t count(const char* key) const {
    const auto* value = find(key);
    if (!value || !value->is_number_integer() || value->get<int64_t>() < 1) fail_type(key, "an integer of at least 1");
    return value->get<int64_t>();
  }
  int64_t count(const char* key, int64_t otherwise) const { return find(key) ? count(key) : otherwise; }
  bool flag(const char* key, bool otherwise) const {
    const auto* value = find(key);
    if (value && !value->is_boolean()) fail_type(key, "true or false");
    return value ? value->get<bool>() : otherwise;
  }
  std::string text(const char* key, const char* otherwise) const {
    const auto* value = find(key);
    if (value && !value->is_string()) fail_type(key, "a string");
    return value ? value->get<std::string>() : otherwise;
  }
  ConfigReader inner(const char* key) const { return {*find(key), path_}; }

  template <class T>
  void require(const char* key, const T& value, const T& wanted) const {
    if (!(value >= wanted && value <= wanted))
      fail<BadInput>("{}: {} is {}; the model here has {}.", path_, key, Json(value).dump(), Json(wanted).dump());
  }
  void require_absent(const char* key) const {
    if (find(key)) fail<BadInput>("{}: has {}, which the model here has not.", path_, key);
  }
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail_type(const char* key, const char* wanted) const {
    fail<FileError>("{}: {} must be {}.", path_, key, wanted);
  }

  const Json& json_;
  const std::string& path_;
};

}  // namespace lockstep::trainer
