#include "trainer/mesh_degrees.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/error.h"
#include "core/suggest.h"

namespace lockstep::trainer {
namespace {

constexpr std::string_view kOneDevice = "one device";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

const MeshDegrees::Axis& axis_named(std::string_view name, std::string_view mesh) {
  std::vector<std::string> names;
  for (const auto& axis : MeshDegrees::axes()) {
    if (axis.name == name) return axis;
    names.emplace_back(axis.name);
  }
  const auto close = nearest(name, names);
  fail<BadInput>("mesh \"{}\": {} is not an axis.{} Axes are {}.", mesh, name,
                 close ? fmt::format(" Did you mean {}?", *close) : "", fmt::join(names, ", "));
}

int64_t parse_size(std::string_view text, std::string_view axis, std::string_view mesh) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size() || size < 1 || size > kMaxRanks)
    fail<BadInput>("mesh \"{}\": the size of {} is \"{}\", must be an integer of at least 1.", mesh, axis, text);
  return size;
}

void parse_axis(std::string_view part, std::string_view mesh, std::vector<std::string_view>& seen, MeshDegrees& out) {
  const auto equals = part.find('=');
  if (equals == part.npos) fail<BadInput>("mesh \"{}\": \"{}\" is not of the form axis=size.", mesh, part);
  const auto& axis = axis_named(trimmed(part.substr(0, equals)), mesh);
  if (std::find(seen.begin(), seen.end(), axis.name) != seen.end())
    fail<BadInput>("mesh \"{}\": {} is given twice.", mesh, axis.name);
  seen.push_back(axis.name);
  out.*axis.size = parse_size(trimmed(part.substr(equals + 1)), axis.name, mesh);
  if (out.ranks() > kMaxRanks) fail<BadInput>("mesh \"{}\" has more than {} ranks.", mesh, kMaxRanks);
}

}  // namespace

const std::array<MeshDegrees::Axis, 5>& MeshDegrees::axes() {
  using Section = ParallelismSection;
  static constexpr std::array<Axis, 5> kAxes = {{
      {"pp", "pipeline_parallel_degree", &MeshDegrees::pp, &Section::pipeline_parallel_degree},
      {"dp_replicate", "data_parallel_replicate_degree", &MeshDegrees::dp_replicate,
       &Section::data_parallel_replicate_degree},
      {"dp_shard", "data_parallel_shard_degree", &MeshDegrees::dp_shard, &Section::data_parallel_shard_degree},
      {"cp", "context_parallel_degree", &MeshDegrees::cp, &Section::context_parallel_degree},
      {"tp", "tensor_parallel_degree", &MeshDegrees::tp, &Section::tensor_parallel_degree},
  }};
  return kAxes;
}

int64_t MeshDegrees::ranks() const {
  int64_t product = 1;
  for (const auto& axis : axes())
    if (__builtin_mul_overflow(product, this->*axis.size, &product)) return std::numeric_limits<int64_t>::max();
  return product;
}

std::string MeshDegrees::text() const {
  std::string text;
  for (const auto& axis : axes())
    if (this->*axis.size != 1) text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, this->*axis.size);
  return text.empty() ? std::string(kOneDevice) : text;
}

MeshDegrees mesh_of(const Job& job) {
  MeshDegrees degrees;
  for (const auto& axis : MeshDegrees::axes()) {
    degrees.*axis.size = job.parallelism.*axis.degree;
    LOCKSTEP_CHECK(degrees.*axis.size >= 1, "parallelism.{} is not resolved", axis.key);
  }
  return degrees;
}

MeshDegrees parse_mesh(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) fail<BadInput>("a mesh is empty; expected axis=size pairs such as \"dp_shard=2,tp=2\".");
  MeshDegrees degrees;
  if (text == kOneDevice) return degrees;
  std::vector<std::string_view> seen;
  for (const auto part : split(text, ',')) parse_axis(part, text, seen, degrees);
  return degrees;
}

std::vector<MeshDegrees> parse_meshes(std::string_view text) {
  std::vector<MeshDegrees> meshes;
  for (const auto part : split(text, ';')) meshes.push_back(parse_mesh(part));
  return meshes;
}

}  // namespace lockstep::trainer
