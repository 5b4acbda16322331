#include "replay/store/op_case.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/file_descriptor.h"
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
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0)
    fail<FileError>("{} cannot be read: {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail<FileError>("{} is no file", path);
  Bytes bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const auto count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count <= 0) fail<FileError>("{} cannot be read: {}", path, count < 0 ? std::strerror(errno) : "it is shorter");
    done += static_cast<size_t>(count);
  }
  return bytes;
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
    const auto description = nlohmann::ordered_json::parse(file.job);
    if (description.at("kind") != kKind) fail<FileError>("{} is no case: its kind is another", path);
    OpCase one;
    for (const auto& field : kFields) one.*field.text = description.at(field.name);
    one.rounded_levels = description.value("rounded_levels", int64_t{0});
    if (one.rounded_levels < 0 || one.rounded_levels > 6)
      fail<FileError>("{} is no case: rounded_levels {}, expected 0 to 6", path, one.rounded_levels);
    one.arguments = description.at("arguments").dump();
    one.finding = std::move(file.reason);
    one.tensors = std::move(file.state);
    return one;
  } catch (const nlohmann::json::exception& error) {
    fail<FileError>("{} is no case (lockstep verify writes them): {}", path, error.what());
  }
}

}  // namespace lockstep::replay
