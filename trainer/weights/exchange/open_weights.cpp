#include "trainer/weights/exchange/open_weights.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "core/error.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/weights/averaged_weights.h"
#include "trainer/weights/checkpoint_weights.h"
#include "trainer/weights/hugging_face/weights.h"
#include "trainer/weights/merged_weights.h"
#include "trainer/weights/torch_checkpoint/weights.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_unknown(const std::string& folder) {
  if (!fs::is_directory(folder)) fail<BadInput>("{}: is no folder of weights.", folder);
  if (const auto steps = complete_steps(folder); !steps.empty())
    fail<BadInput>("{}: holds checkpoints of steps {}; name one of them: {}.", folder, fmt::join(steps, ", "),
                   checkpoint_path(folder, steps.back()));
  fail<BadInput>(
      "{}: holds no weights: a checkpoint has index.json, Hugging Face's have config.json and model.safetensors, "
      "PyTorch's .metadata.",
      folder);
}

}  // namespace

std::unique_ptr<WeightSource> open_weights(const std::string& folder, const ModelSection* model) {
  if (is_checkpoint_folder(folder)) return open_checkpoint(folder);
  if (is_hugging_face_folder(folder)) return open_hugging_face(folder);
  if (is_torch_checkpoint_folder(folder)) {
    if (model) return open_torch_checkpoint(folder, *model);
    fail<BadInput>(
        "{}: is a checkpoint of PyTorch's, which does not say its model. Make one of Lockstep's of it, with a job that "
        "has the model: lockstep checkpoint import {} FOLDER --job JOB.toml",
        folder, folder);
  }
  fail_unknown(folder);
}

std::unique_ptr<WeightSource> open_model(const std::string& folder, bool averages) {
  if (averages && !is_checkpoint_folder(folder)) fail<BadInput>("{}: is no checkpoint, and holds no averages.", folder);
  auto source = averages ? open_averages(folder) : open_weights(folder);
  return source->lora().enabled() ? merged(std::move(source)) : std::move(source);
}

}  // namespace lockstep::trainer
