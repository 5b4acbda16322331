#include "trainer/data/dataset.h"

#include "trainer/data/text_dataset.h"
#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

std::unique_ptr<Dataset> make_text(const Job& job, int64_t vocabulary) {
  return std::make_unique<TextDataset>(job.training.dataset_path, job.training.seq_len, vocabulary,
                                       static_cast<uint64_t>(job.debug.seed));
}

}  // namespace

const Registry<DatasetBuilder>& dataset_registry() {
  static const Registry<DatasetBuilder> all("training.dataset", kDatasetNames, {{"text", make_text}});
  return all;
}

std::unique_ptr<Dataset> make_dataset(const Job& job, int64_t vocabulary) {
  return dataset_registry().at(job.training.dataset)(job, vocabulary);
}

}  // namespace lockstep::trainer
