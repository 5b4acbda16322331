#include "trainer/checkpoint/checkpoint_index.h"

#include "core/digest/digest.h"
#include "core/error.h"
#include "trainer/checkpoint/exact_cover.h"
#include "trainer/checkpoint/run_origin_json.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/strict_json.h"

namespace lockstep::trainer {
namespace {

constexpr std::string_view kFormat = "lockstep-checkpoint";
/// Version 1 has no numerics version, 1 and 2 do not say which run saved them; both are still read.
constexpr int64_t kVersionWithoutNumerics = 1, kVersionWithoutOrigin = 2, kVersion = 3;

std::string digest_of(const nlohmann::json& contents) {
  const auto text = contents.dump();
  return digest(std::as_bytes(std::span(text))).text();
}

nlohmann::json to_json(const std::string& name, const TensorRecord& tensor) {
  auto chunks = nlohmann::json::array();
  for (const auto& chunk : tensor.chunks)
    chunks.push_back({{"offset", chunk.box.offset},
                      {"size", chunk.box.size},
                      {"file", chunk.file},
                      {"tensor", chunk.tensor},
                      {"digest", chunk.digest}});
  return {{"name", name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"chunks", chunks}};
}

/// A file name that stays in the checkpoint's folder.
std::string read_file_name(const JsonPlace& place) {
  auto name = place.text();
  if (name.empty() || name.find('/') != name.npos || name.find('\0') != name.npos || name.starts_with('.'))
    place.fail_expected("a plain file name");
  return name;
}

ChunkRecord read_chunk(const JsonPlace& place, const TensorRecord& tensor) {
  place.require_keys({"offset", "size", "file", "tensor", "digest"});
  ChunkRecord chunk{{place["offset"].counts(), place["size"].counts()},
                    read_file_name(place["file"]),
                    place["tensor"].text(),
                    place["digest"].text()};
  if (!chunk.box.inside(tensor.shape)) place.fail_expected("a chunk inside the tensor");
  return chunk;
}

void require_exact_cover(const JsonPlace& place, const TensorRecord& tensor) {
  std::vector<Box> boxes;
  for (const auto& chunk : tensor.chunks) boxes.push_back(chunk.box);
  if (const auto problem = cover_problem(tensor.shape, boxes); !problem.empty()) place.fail_expected(problem);
}

TensorRecord read_tensor(const JsonPlace& place, Coverage coverage) {
  place.require_keys({"name", "dtype", "shape", "chunks"});
  TensorRecord tensor{place["dtype"].text(), place["shape"].counts(), {}};
  if (element_size(tensor.dtype) == 0) place["dtype"].fail_expected("a known type");
  if (element_count(tensor.shape) < 0) place["shape"].fail_expected("a shape of at most 2^62 elements");
  for (const auto& chunk : place["chunks"].elements()) tensor.chunks.push_back(read_chunk(chunk, tensor));
  if (coverage == Coverage::kWhole) require_exact_cover(place["chunks"], tensor);
  return tensor;
}

std::optional<int64_t> read_numerics_version(const JsonPlace& place) {
  if (place["version"].count() == kVersionWithoutNumerics) return std::nullopt;
  const auto version = place["numerics_version"].count();
  if (version > kMostNumericsVersion)
    place["numerics_version"].fail_expected(fmt::format("a version of at most {}", kMostNumericsVersion));
  return version;
}

RunOrigin read_origin(const JsonPlace& place) {
  place.require_keys({"identity", "data", "parents"});
  RunOrigin origin{place["identity"].text(), place["data"].text(), {}};
  for (const auto& parent : place["parents"].elements()) {
    parent.require_keys({"identity", "step"});
    origin.parents.push_back({parent["identity"].text(), parent["step"].count()});
  }
  return origin;
}

/// What no version before 3 has.
void read_run(const JsonPlace& place, CheckpointMetadata& metadata) {
  metadata.origin = read_origin(place["run"]);
  metadata.learning_rate = place["learning_rate"].text();
  metadata.state = place["state"].text();
}

CheckpointIndex read_contents(const JsonPlace& place, Coverage coverage) {
  const auto version = place["version"].count();
  if (version == kVersionWithoutNumerics)
    place.require_keys({"format", "version", "step", "sample", "job", "tensors"});
  else if (version == kVersionWithoutOrigin)
    place.require_keys({"format", "version", "numerics_version", "step", "sample", "job", "tensors"});
  else
    place.require_keys(
        {"format", "version", "numerics_version", "run", "step", "sample", "learning_rate", "state", "job", "tensors"});
  CheckpointIndex index;
  index.metadata = {place["step"].count(), place["sample"].count(), place["job"].text(), read_numerics_version(place)};
  if (version > kVersionWithoutOrigin) read_run(place, index.metadata);
  for (const auto& tensor : place["tensors"].elements())
    if (!index.tensors.emplace(tensor["name"].text(), read_tensor(tensor, coverage)).second)
      tensor.fail_expected("a name that is not taken");
  return index;
}

}  // namespace

std::string index_text(const CheckpointIndex& index) {
  auto tensors = nlohmann::json::array();
  for (const auto& [name, tensor] : index.tensors) tensors.push_back(to_json(name, tensor));
  const auto& metadata = index.metadata;
  nlohmann::json contents = {{"format", kFormat},     {"version", kVersionWithoutNumerics},
                             {"step", metadata.step}, {"sample", metadata.sample},
                             {"job", metadata.job},   {"tensors", tensors}};
  if (metadata.numerics_version) {
    contents["version"] = kVersion;
    contents["numerics_version"] = *metadata.numerics_version;
    contents["run"] = json_of<nlohmann::json>(metadata.origin);
    contents["learning_rate"] = metadata.learning_rate;
    contents["state"] = metadata.state;
  }
  return nlohmann::json({{"contents", contents}, {"digest", digest_of(contents)}}).dump(1) + "\n";
}

CheckpointIndex parse_index(std::string_view text, const std::string& path, Coverage coverage) {
  const auto document = parse_strict_json(text, path);
  const JsonPlace top(document, path);
  top.require_keys({"contents", "digest"});
  const auto contents = top["contents"];
  if (contents["format"].text() != kFormat) contents["format"].fail_expected(kFormat);
  if (const auto version = contents["version"].count(); version < kVersionWithoutNumerics || version > kVersion)
    fail<FileError>("{}: has format version {}; this build reads versions {} to {}.", path, version,
                    kVersionWithoutNumerics, kVersion);
  if (digest_of(document["contents"]) != top["digest"].text())
    fail<FileError>("{}: damaged: the contents do not match their digest.", path);
  return read_contents(contents, coverage);
}

}  // namespace lockstep::trainer
