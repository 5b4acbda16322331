#include "trainer/plugin/load_plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>

#include "core/digest/digest.h"
#include "core/error.h"
#include "core/files/mapped_file.h"
#include "trainer/plugin/plugin.h"

namespace lockstep::trainer {
namespace {

constexpr std::string_view kMark = LOCKSTEP_PLUGIN_MARK;
constexpr std::string_view kVersion = LOCKSTEP_PLUGIN_VERSION;

/// What stands behind the mark.
std::string_view version_in(const std::string& path, std::string_view file) {
  const auto at = file.find(kMark);
  if (at == file.npos) fail<BadInput>("plug-in {}: is none: there is no LOCKSTEP_PLUGIN in it.", path);
  const auto behind = file.substr(at + kMark.size(), 256);
  return behind.substr(0, behind.find('\0'));
}

std::string checked_digest(const std::string& path) try {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  const auto version = version_in(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (version != kVersion)
    fail<BadInput>("plug-in {}: was built for another Lockstep: {}; this one has {}. Build it again.", path, version,
                   kVersion);
  return digest(bytes).text();
} catch (const FileError& error) {
  fail<BadInput>("plug-in {}", error.what());
}

using Fill = void (*)(Plugin&);

/// A path without a slash would be looked for where the system has its libraries.
Fill entry_of(const std::string& path) {
  void* library = ::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail<BadInput>("plug-in {}: cannot be loaded: {}.", path, ::dlerror());
  auto* entry = ::dlsym(library, "lockstep_plugin");
  if (!entry) fail<BadInput>("plug-in {}: is none: there is no LOCKSTEP_PLUGIN in it.", path);
  return reinterpret_cast<Fill>(entry);
}

}  // namespace

void Plugin::model(Choice name, ModelBuilder builder) { model_registry().add(name, builder); }
void Plugin::dataset(Choice name, DatasetBuilder builder) { dataset_registry().add(name, builder); }
void Plugin::optimizer(Choice name, OptimizerBuilder builder) { optimizer_registry().add(name, builder); }
void Plugin::schedule(Choice name, DecayShape shape) { decay_registry().add(name, shape); }

std::string load_plugin(const std::string& path) {
  const auto found = checked_digest(path);
  const auto fill = entry_of(path);
  try {
    Plugin plugin;
    fill(plugin);
  } catch (const std::exception& error) {
    fail<BadInput>("plug-in {}: {}", path, error.what());
  }
  return fmt::format("{} {}", std::filesystem::path(path).filename().string(), found);
}

}  // namespace lockstep::trainer
