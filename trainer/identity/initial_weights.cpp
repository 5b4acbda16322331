#include "trainer/identity/initial_weights.h"

#include <filesystem>
#include <set>

#include "core/digest/digest.h"
#include "core/error.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/data/data_file.h"
#include "trainer/identity/run_start.h"
#include "trainer/job/job_file.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

bool has_tensors(const fs::path& file) { return file.extension() == ".safetensors" || file.extension() == ".distcp"; }

bool is_of_weights(const fs::path& file) {
  const auto name = file.filename();
  return has_tensors(file) || name == kIndexFile || name == "config.json" || name == ".metadata";
}

/// Empty: the job begins anew, or the run that it goes on from began with drawn ones.
std::string digest_of_saved_run(const Job& job) {
  const auto step = step_to_resume(job);
  if (!step) return "";
  const auto folder = checkpoint_path(checkpoint_root(job), *step);
  return parse_saved_job(saved_metadata(folder).job, folder).checkpoint.initial_load_digest;
}

}  // namespace

std::string weights_digest(const std::string& folder) {
  if (!fs::is_directory(folder)) fail<BadInput>("checkpoint.initial_load_path: {} is no folder.", folder);
  std::set<std::string> files;
  bool holds_some = false;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!is_of_weights(entry.path())) continue;
    files.insert(entry.path().filename().string());
    holds_some |= has_tensors(entry.path());
  }
  if (!holds_some)
    fail<BadInput>(
        "checkpoint.initial_load_path: {} holds no .safetensors or .distcp files. Name one checkpoint (a folder "
        "step-N), or one of "
        "Hugging Face's or of PyTorch's.",
        folder);
  Digester digester;
  for (const auto& file : files) digester.update(file + " " + data_digest((fs::path(folder) / file).string()) + "\n");
  return digester.result().text();
}

Job with_initial_weights(Job job) {
  auto& section = job.checkpoint;
  if (section.initial_load_path.empty()) {
    if (!section.initial_load_digest.empty())
      fail<BadInput>("checkpoint.initial_load_digest is set, but no checkpoint.initial_load_path.");
    return job;
  }
  auto digest = digest_of_saved_run(job);
  if (digest.empty()) digest = weights_digest(section.initial_load_path);
  if (!section.initial_load_digest.empty() && section.initial_load_digest != digest)
    fail<BadInput>("checkpoint.initial_load_path: {} has digest {}, not {} as checkpoint.initial_load_digest says.",
                   section.initial_load_path, digest, section.initial_load_digest);
  section.initial_load_digest = digest;
  return job;
}

}  // namespace lockstep::trainer
