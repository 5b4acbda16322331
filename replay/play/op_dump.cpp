#include "replay/play/op_dump.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>
#include <fmt/ranges.h>

#include "replay/capture/recorded_tensor.h"
#include "replay/store/recording_file.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

RecordedTensor copy_of(const std::string& name, const at::Tensor& tensor, int rank) {
  auto& self = sharded(tensor);
  const auto index = static_cast<size_t>(self.spec().layout.mesh().local_index(rank));
  return recorded_tensor(name, self.shards()->local_tensors()[index]);
}

/// NumPy's name of a dtype, little endian.
std::string numpy_type(int8_t dtype) {
  const auto type = static_cast<c10::ScalarType>(dtype);
  const auto size = c10::elementSize(type);
  if (type == c10::kBool) return "|b1";
  if (type == c10::kFloat || type == c10::kDouble || type == c10::kHalf) return fmt::format("<f{}", size);
  if (c10::isIntegralType(type, false) && type != c10::kByte) return fmt::format("<i{}", size);
  return fmt::format("<u{}", size);
}

std::string to_npy(const RecordedTensor& tensor) {
  constexpr size_t kAlignment = 64, kPrefix = 10;
  auto header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", numpy_type(tensor.dtype),
                            fmt::join(tensor.sizes, ", "), tensor.sizes.size() == 1 ? "," : "");
  header.resize((kPrefix + header.size() + kAlignment) / kAlignment * kAlignment - kPrefix - 1, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  return file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
}

}  // namespace

std::vector<RecordedTensor> operands_of(const OpEvent& event, int rank) {
  std::vector<RecordedTensor> tensors;
  const auto& arguments = event.op.schema().arguments();
  for (size_t a = 0; a < arguments.size(); ++a)
    if (event.arguments[a].isTensor() && is_sharded(event.arguments[a].toTensor()))
      tensors.push_back(copy_of("operand." + arguments[a].name(), event.arguments[a].toTensor(), rank));
  return tensors;
}

std::vector<RecordedTensor> results_of(const OpEvent& event, std::span<const c10::IValue> results, int rank) {
  std::vector<RecordedTensor> tensors;
  for (const auto& result : op_results(event, results))
    tensors.push_back(copy_of(fmt::format("result.{}", tensors.size()), result.tensor, rank));
  return tensors;
}

std::vector<BreakFolder::File> break_files(const std::string& op, int rank, int64_t step,
                                           const std::vector<RecordedTensor>& tensors) {
  const auto bytes = break_file(op, rank, step, tensors);
  std::vector<BreakFolder::File> files{{"op.h5", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}}};
  for (const auto& tensor : tensors) files.emplace_back(tensor.name + ".npy", to_npy(tensor));
  return files;
}

}  // namespace lockstep::replay
