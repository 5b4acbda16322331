#include <ATen/Functions.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "runtime/plain/tensor_bytes.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/job/job_file.h"
#include "trainer/weights/checkpoint_weights.h"
#include "trainer/weights/exchange/exchange_weights.h"
#include "trainer/weights/exchange/new_folder.h"
#include "trainer/weights/exchange/open_weights.h"
#include "trainer/weights/hugging_face/config.h"
#include "trainer/weights/hugging_face/names.h"
#include "trainer/weights/hugging_face/rotary_rows.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

at::Tensor foreign_tensor(const WeightSource& source, const ForeignTensor& tensor, c10::ScalarType dtype) {
  std::vector<at::Tensor> parts;
  if (tensor.expert >= 0) return source.rows(tensor.parts[0], tensor.expert, 1)[0].to(dtype).contiguous();
  for (const auto& part : tensor.parts) parts.push_back(whole_tensor(source, part));
  auto rows = parts.size() == 1 ? parts[0] : at::cat(parts);
  if (tensor.rotary_head_size > 0) rows = pairs_apart(rows, tensor.rotary_head_size);
  return (tensor.transposed ? rows.t() : rows).to(dtype).contiguous();
}

int64_t bytes_of_tensor(const WeightSource& source, const ForeignTensor& tensor, c10::ScalarType dtype) {
  int64_t elements = 0;
  for (const auto& part : tensor.parts) elements += c10::multiply_integers(source.sizes().at(part));
  if (tensor.expert >= 0) elements /= source.sizes().at(tensor.parts[0])[0];
  return elements * static_cast<int64_t>(c10::elementSize(dtype));
}

using FileTensors = std::vector<const ForeignTensor*>;

/// Which tensors go into one file, in their order.
std::vector<FileTensors> dealt(const WeightSource& source, const std::vector<ForeignTensor>& tensors,
                               c10::ScalarType dtype, int64_t most) {
  std::vector<FileTensors> files(1);
  int64_t bytes = 0;
  for (const auto& tensor : tensors) {
    const auto size = bytes_of_tensor(source, tensor, dtype);
    if (bytes > 0 && bytes + size > most) files.emplace_back(), bytes = 0;
    files.back().push_back(&tensor), bytes += size;
  }
  return files;
}

class Exporter {
 public:
  Exporter(const WeightSource& source, std::string folder, const ExportOptions& options,
           const WeightsProgress& progress)
      : source_(source), folder_(std::move(folder)), options_(options), progress_(progress) {}

  void write() {
    const auto files = dealt(source_, tensors_, dtype_, options_.file_bytes);
    for (size_t i = 0; i < files.size(); ++i)
      write_file(files.size() == 1 ? "model.safetensors"
                                   : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size()),
                 files[i]);
    if (files.size() == 1) return;
    const nlohmann::json index{{"metadata", {{"total_size", bytes_}}}, {"weight_map", places_}};
    write_file_atomically((fs::path(folder_) / "model.safetensors.index.json").string(), index.dump(2) + "\n");
  }

 private:
  void write_file(const std::string& file, const FileTensors& tensors) {
    std::vector<at::Tensor> kept;
    std::vector<TensorBytes> entries;
    for (const auto* tensor : tensors) {
      const auto dtype = tensor->in_float32 ? c10::kFloat : dtype_;
      const auto& value = kept.emplace_back(foreign_tensor(source_, *tensor, dtype));
      entries.push_back({tensor->name, dtype == c10::kFloat ? "F32" : "BF16", value.sizes().vec(), bytes_of(value)});
      places_[tensor->name] = file;
      bytes_ += static_cast<int64_t>(value.nbytes());
      if (progress_) progress_(static_cast<int64_t>(places_.size()), static_cast<int64_t>(tensors_.size()));
    }
    write_safetensors((fs::path(folder_) / file).string(), entries);
  }

  const WeightSource& source_;
  std::string folder_;
  const ExportOptions& options_;
  const WeightsProgress& progress_;
  std::vector<ForeignTensor> tensors_ = hugging_face_tensors(source_.model());
  c10::ScalarType dtype_ = options_.dtype == "float32" ? c10::kFloat : c10::kBFloat16;
  std::map<std::string, std::string> places_;
  int64_t bytes_ = 0;
};

}  // namespace

void export_weights(const std::string& from, const std::string& to, const ExportOptions& options,
                    const WeightsProgress& progress) {
  require_new_folder(to);
  if (options.dtype != "float32" && options.dtype != "bfloat16")
    fail<BadInput>("--dtype is {}, must be float32 or bfloat16.", options.dtype);
  if (!is_checkpoint_folder(from)) fail<BadInput>("{}: is no checkpoint: it has no index.json.", from);
  const auto source = open_model(from, options.averages);
  const auto& name = source->model().name;
  if (name != "llama3" && name != "gpt2" && name != "moe")
    fail<BadInput>("{}: holds a model \"{}\", which transformers has not; llama3, gpt2 and moe can be exported.", from,
                   name);
  const auto length =
      options.length > 0 ? options.length : parse_saved_job(saved_metadata(from).job, from).training.seq_len;
  fs::create_directories(to);
  Exporter(*source, to, options, progress).write();
  write_file_atomically((fs::path(to) / "config.json").string(),
                        hugging_face_config(source->model(), length, options.dtype));
}

}  // namespace lockstep::trainer
