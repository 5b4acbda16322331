#include "trainer/forecast/hardware.h"

#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <filesystem>

#include "core/error.h"

namespace lockstep::trainer::forecast {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr int64_t kMostRanks = 1 << 20;

/// SXM parts, in hosts of eight with NVLink, each with a network port of its own: data sheets of NVIDIA.
std::vector<Hardware> known() {
  return {{"a100", 81920 * kMebibyte, 312e12, 2.039e12, 8, 300e9, 25e9},
          {"h100", 81559 * kMebibyte, 989e12, 3.35e12, 8, 450e9, 50e9},
          {"h200", 143771 * kMebibyte, 989e12, 4.8e12, 8, 450e9, 50e9}};
}

enum class Kind : uint8_t { kAmount, kShare, kShareOfMemory, kLatency, kRanks };

struct Field {
  const char* name;
  double Hardware::*value;
  Kind kind = Kind::kAmount;
};

constexpr Field kFields[] = {{"memory_bytes", &Hardware::memory_bytes},
                             {"operations_per_second", &Hardware::operations_per_second},
                             {"memory_bytes_per_second", &Hardware::memory_bytes_per_second},
                             {"host_bytes_per_second", &Hardware::host_bytes_per_second},
                             {"network_bytes_per_second", &Hardware::network_bytes_per_second},
                             {"host_latency_seconds", &Hardware::host_latency_seconds, Kind::kLatency},
                             {"network_latency_seconds", &Hardware::network_latency_seconds, Kind::kLatency},
                             {"ranks_at_full_speed", &Hardware::ranks_at_full_speed, Kind::kRanks},
                             {"products", &Hardware::products, Kind::kShare},
                             {"attention", &Hardware::attention, Kind::kShare},
                             {"elements", &Hardware::elements, Kind::kShareOfMemory},
                             {"optimizer", &Hardware::optimizer, Kind::kShare},
                             {"links", &Hardware::links, Kind::kShare}};

/// What a field of the kind may be.
std::pair<double, double> range_of(Kind kind) {
  if (kind == Kind::kAmount) return {1, 1e21};
  if (kind == Kind::kLatency) return {0, 1};
  if (kind == Kind::kRanks) return {0, kMostRanks};
  return {kLeastShare, kind == Kind::kShare ? kMostShare : kMostShareOfMemory};
}

constexpr const char* kRanksPerHost = "ranks_per_host";

void read(const std::string& file, const Field& field, const toml::node& node, Hardware& hardware) {
  const auto value = node.value<double>();
  const auto [least, most] = range_of(field.kind);
  if (!value || !(*value >= least && *value <= most))
    fail<BadInput>("{}: {} must be a number from {} to {}.", file, field.name, least, most);
  hardware.*field.value = *value;
}

void read_ranks(const std::string& file, const toml::node& node, Hardware& hardware) {
  const auto ranks = node.value<int64_t>();
  if (!ranks || *ranks < 1 || *ranks > kMostRanks)
    fail<BadInput>("{}: {} must be a whole number from 1 to {}.", file, kRanksPerHost, kMostRanks);
  hardware.ranks_per_host = *ranks;
}

void read_key(const std::string& file, std::string_view key, const toml::node& node, Hardware& hardware) {
  if (key == kRanksPerHost) return read_ranks(file, node, hardware);
  for (const auto& field : kFields)
    if (key == field.name) return read(file, field, node, hardware);
  std::vector<std::string> names{kRanksPerHost};
  for (const auto& each : kFields) names.emplace_back(each.name);
  fail<BadInput>("{}: {} is no field of hardware. There are {}.", file, key, fmt::join(names, ", "));
}

Hardware from_file(const std::string& file) {
  Hardware hardware{.name = file};
  try {
    for (const auto& [key, node] : toml::parse_file(file)) read_key(file, key.str(), node, hardware);
  } catch (const toml::parse_error& error) {
    fail<BadInput>("{}:{}: {}.", file, error.source().begin.line, error.description());
  }
  for (const auto& field : kFields)
    if (field.kind == Kind::kAmount && hardware.*field.value <= 0)
      fail<BadInput>("{}: {} is missing.", file, field.name);
  return hardware;
}

}  // namespace

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const auto& hardware : known()) names.push_back(hardware.name);
  return names;
}

std::string to_toml(const Hardware& hardware) {
  auto text = fmt::format("{} = {}\n", kRanksPerHost, hardware.ranks_per_host);
  for (const auto& field : kFields) text += fmt::format("{} = {}\n", field.name, hardware.*field.value);
  return text;
}

Hardware hardware_of(const std::string& name_or_file) {
  for (auto& hardware : known())
    if (hardware.name == name_or_file) return std::move(hardware);
  std::error_code error;
  if (std::filesystem::is_regular_file(name_or_file, error)) return from_file(name_or_file);
  fail<BadInput>("--hardware {} is neither one of {} nor a file.", name_or_file, fmt::join(hardware_names(), ", "));
}

}  // namespace lockstep::trainer::forecast
