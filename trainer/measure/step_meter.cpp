#include "trainer/measure/step_meter.h"

#include <ATen/Functions.h>

#include "runtime/context/world.h"
#include "runtime/exchange/exchanges_in_flight.h"
#include "runtime/kernels/speed/machine_speed.h"
#include "runtime/kernels/tensors/parallel_workers.h"
#include "runtime/plain/plain_tensors.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/measure/device_speed.h"

namespace lockstep::trainer {
namespace {

/// The columns of what a rank says.
enum Column { kLoss, kTokens, kData, kWaited, kPeak, kColumns };

/// With the threads that kernels have. Processes on one machine share it: they measure together.
double peak_of_this_process(const Mesh& mesh, c10::ScalarType compute) {
  if (mesh.world().transport()) any_rank(mesh, false);
  const auto device = mesh.world().shard_device();
  if (device.is_cuda()) return device_product_speed(device, compute);
  static const double peak = kernels::product_speed(kernels::parallel_workers(/*operations=*/1e9));
  return peak;
}

std::optional<double> largest_mean(const at::Tensor& rows) {
  const auto row = rows.accessor<double, 2>();
  std::optional<double> largest;
  for (int64_t rank = 0; rank < row.size(0); ++rank)
    if (const double mean = row[rank][kLoss] / row[rank][kTokens]; row[rank][kTokens] > 0)
      largest = largest ? std::max(*largest, mean) : mean;
  return largest;
}

}  // namespace

StepMeter::StepMeter(const Mesh& mesh, c10::ScalarType compute)
    : mesh_(mesh), peak_operations_(peak_of_this_process(mesh, compute)) {}

void StepMeter::begin() {
  begin_ = Clock::now();
  waited_before_ = waited();
}

double StepMeter::seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

double StepMeter::waited() const {
  return mesh_.world().transport() ? mesh_.world().part<ExchangesInFlight>().waited() : 0;
}

/// A process with several ranks has one time, and its threads are those of all of them.
StepMeasures StepMeter::end(std::span<const LocalLoss> losses) const {
  const PlainTensors guard;
  const auto here = static_cast<double>(mesh_.local_count());
  const double waited = this->waited() - waited_before_;
  Shards rows;
  for (size_t i = 0; i < mesh_.local_count(); ++i) {
    const auto loss = i < losses.size() ? losses[i] : LocalLoss{};
    rows.push_back(
        at::tensor(std::vector<double>{loss.sum, loss.tokens, data_seconds_, waited, peak_operations_ / here}));
  }
  const auto all = rows_of_all_ranks(mesh_, rows);
  const auto column = [&](Column number) { return all.select(1, number); };
  StepMeasures measures{.max_loss = largest_mean(all),
                        .data_seconds = column(kData).max().item<double>(),
                        .communication_seconds = {},
                        .peak_operations = column(kPeak).sum().item<double>()};
  if (mesh_.world().transport()) measures.communication_seconds = column(kWaited).mean().item<double>();
  return measures;
}

}  // namespace lockstep::trainer
