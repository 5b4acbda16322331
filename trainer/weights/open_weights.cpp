#include "trainer/weights/open_weights.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "core/error.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/weights/checkpoint_weights.h"
#include "trainer/weights/hugging_face_weights.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_unknown(const std::string& folder) {
  if (!fs::is_directory(folder)) fail<BadInput>("{}: is no folder of weights.", folder);
  if (const auto steps = complete_steps(folder); !steps.empty())
    fail<BadInput>("{}: holds checkpoints of steps {}; name one of them: {}.", folder, fmt::join(steps, ", "),
                   checkpoint_path(folder, steps.back()));
  fail<BadInput>(
      "{}: holds no weights: a checkpoint has index.json, Hugging Face's have config.json and model.safetensors.",
      folder);
}

}  // namespace

std::unique_ptr<WeightSource> open_weights(const std::string& folder) {
  if (is_checkpoint_folder(folder)) return open_checkpoint(folder);
  if (is_hugging_face_folder(folder)) return open_hugging_face(folder);
  fail_unknown(folder);
}

}  // namespace lockstep::trainer
