#pragma once
#include <cstdint>
#include <functional>
#include <string>

/// Weights into and out of Lockstep's checkpoints.
namespace lockstep::trainer {

/// How many of so many tensors are done; for progress.
using WeightsProgress = std::function<void(int64_t done, int64_t all)>;

/// Writes the weights in a folder (open_weights()) as a checkpoint without optimizer state, of step 0, which a job
/// begins with (checkpoint.initial_load_path). One tensor after the other, in files of about 1 GiB. `model`: of
/// PyTorch's checkpoints, which do not say it; null: the folder says it. BadInput where `to` exists and is not empty.
void import_weights(const std::string& from, const std::string& to, const ModelSection* model = nullptr,
                    const WeightsProgress& progress = {});

/// Writes the weights of a checkpoint as a model's by themselves (open_model()), as import_weights() does: what a job
/// without [lora] begins with. BadInput where they are that already.
void merge_weights(const std::string& from, const std::string& to, bool averages, const WeightsProgress& progress = {});

/// Writes a checkpoint anew with `chunks` chunks of each tensor, cut along its rows, as even as they go: the same
/// tensors, step, run and digest of the state. Any mesh reads any checkpoint; this is for readers that want few or many
/// chunks. BadInput as above, and where `to` is called as another step's folder.
void reshard_checkpoint(const std::string& from, const std::string& to, int64_t chunks,
                        const WeightsProgress& progress = {});

struct ExportOptions {
  bool averages = false;                  ///< of weights in their place (optimizer.ema_decay)
  std::string dtype = "float32";          ///< or "bfloat16": rounded to the nearest, ties to even
  int64_t file_bytes = int64_t{4} << 30;  ///< tensors of a file, unless one alone is larger
  int64_t length = 0;                     ///< of the longest sequence, for config.json; 0: training.seq_len of the job
};

/// Writes the weights of a checkpoint, changes of low rank merged in, as Hugging Face's transformers reads them:
/// config.json, and model.safetensors or several files and their index. Errors as import_weights().
void export_weights(const std::string& from, const std::string& to, const ExportOptions& options,
                    const WeightsProgress& progress = {});

}  // namespace lockstep::trainer
