#include "trainer/data/dataset.h"

#include <filesystem>

#include "core/digest/digest.h"
#include "core/error.h"
#include "trainer/data/conversations_dataset.h"
#include "trainer/data/data_file.h"
#include "trainer/data/text_dataset.h"
#include "trainer/data/tokens_dataset.h"
#include "trainer/job/job.h"
#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

/// A text is one file, and its name is taken as it is.
const std::string& text_path(const Job& job) {
  const auto& paths = job.training.dataset_path;
  if (paths.size() != 1)
    fail<BadInput>("training.dataset_path names {} files; training.dataset \"text\" has one, \"tokens\" any number.",
                   paths.size());
  return paths[0];
}

std::unique_ptr<Dataset> make_text(const Job& job, int64_t vocabulary) {
  if (job.training.pack_documents)
    fail<BadInput>("training.pack_documents: a text is one document; choose training.dataset \"tokens\".");
  return std::make_unique<TextDataset>(text_path(job), job.training.seq_len, vocabulary,
                                       static_cast<uint64_t>(job.debug.seed));
}

std::unique_ptr<Dataset> make_tokens(const Job& job, int64_t vocabulary) {
  return std::make_unique<TokensDataset>(
      TokensDataset::Options{data_sources(job.training.dataset_path), job.training.seq_len, vocabulary,
                             static_cast<uint64_t>(job.debug.seed), job.training.pack_documents});
}

template <bool kPairs>
std::unique_ptr<Dataset> make_conversations(const Job& job, int64_t vocabulary) {
  if (kPairs && job.training.pack_documents)
    fail<BadInput>("training.pack_documents: a conversation of a pair is a sample of its own.");
  return std::make_unique<ConversationsDataset>(
      ConversationsDataset::Options{data_sources(job.training.dataset_path), job.training.seq_len, vocabulary,
                                    static_cast<uint64_t>(job.debug.seed), job.training.pack_documents, kPairs});
}

/// Kinds of data that are files of tokens.
bool are_tokens(const std::string& dataset) {
  return dataset == "tokens" || dataset == "conversations" || dataset == "preferences";
}

}  // namespace

Registry<DatasetBuilder>& dataset_registry() {
  static Registry<DatasetBuilder> all("training.dataset", kDatasetNames,
                                      {{"text", make_text},
                                       {"tokens", make_tokens},
                                       {"conversations", make_conversations<false>},
                                       {"preferences", make_conversations<true>}});
  return all;
}

std::unique_ptr<Dataset> make_dataset(const Job& job, int64_t vocabulary) {
  return dataset_registry().at(job.training.dataset)(job, vocabulary);
}

std::string dataset_digest(const Job& job) {
  const auto& training = job.training;
  if (training.dataset_path.empty()) return "";
  if (are_tokens(training.dataset))
    return tokens_digest(data_sources(training.dataset_path), training.pack_documents || training.dataset != "tokens");
  const bool is_text = training.dataset == "text";
  if (is_text && training.dataset_path.size() == 1) return data_digest(training.dataset_path[0]);
  Digester digester;
  std::error_code none;
  for (const auto& path : training.dataset_path) {  // what they are, a plug-in's dataset knows
    const bool is_file = is_text || std::filesystem::is_regular_file(path, none);
    digester.update((is_file ? data_digest(path) : path) + "\n");
  }
  return digester.result().text();
}

}  // namespace lockstep::trainer
