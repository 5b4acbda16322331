#include "trainer/state/background_save.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <utility>

#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/together.h"
#include "trainer/state/state_checkpoint.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

constexpr auto kHeartbeat = std::chrono::milliseconds(250);

template <class Result>
bool has_ended(const std::future<Result>& work, std::chrono::milliseconds most = {}) {
  return !work.valid() || work.wait_for(most) == std::future_status::ready;
}

/// Where cores are few the steps come first: a thread's priority is its own on Linux.
void give_way() {
  constexpr int kLater = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLater);
}

/// The disk was the same for all when the run began; a file that rank 0 does not see would make no checkpoint.
void require_files(const std::string& folder, const CheckpointIndex& part) {
  std::error_code ignored;
  for (const auto& [name, tensor] : part.tensors)
    for (const auto& chunk : tensor.chunks)
      if (!std::filesystem::exists(folder + "/" + chunk.file, ignored))
        fail<FileError>("{}/{}: another rank wrote it, and it is not seen here: all hosts need one disk.", folder,
                        chunk.file);
}

}  // namespace

BackgroundSave::~BackgroundSave() {
  if (writing_.valid()) writing_.wait();
  if (committing_.valid()) committing_.wait();
}

void BackgroundSave::begin(const std::string& folder, CheckpointMetadata metadata, const TrainingState& state,
                           Chores chores) {
  finish();
  agreed(mesh_, [&] { copy(state); });
  const auto attempt = agreed_attempt(folder, mesh_);
  folder_ = folder, metadata_ = std::move(metadata), chores_ = std::move(chores);
  half_ = Half::kWriting;
  writing_ = std::async(std::launch::async, [this, attempt] {
    auto written = write(attempt);
    if (is_one_process()) commit({written});
    return written;
  });
}

void BackgroundSave::copy(const TrainingState& state) {
  const at::NoGradGuard no_grad;
  const PlainTensors guard;
  auto held = held_shards(state);
  for (size_t i = 0; i < held.size(); ++i) {
    const bool fits = i < copies_.size() && copies_[i].plain.sizes() == held[i].plain.sizes();
    auto buffer = fits ? copies_[i].plain : at::empty_like(held[i].plain);
    buffer.copy_(held[i].plain);
    held[i].plain = std::move(buffer);
  }
  copies_ = std::move(held);
}

BackgroundSave::Written BackgroundSave::write(int64_t attempt) const {
  give_way();
  if (is_first()) chores_.before();
  const auto all = chunks_of(copies_);
  Written written{"", write_chunks(folder_, attempt, mesh_.local_ranks()[0], all.chunks)};
  written.digest = digest_of_held(copies_).text();
  return written;
}

void BackgroundSave::commit(const std::vector<Written>& parts) {
  give_way();
  std::vector<std::string> digests;
  std::vector<CheckpointIndex> indexes;
  for (const auto& part : parts) {
    require_files(folder_, part.index);
    digests.push_back(part.digest), indexes.push_back(part.index);
  }
  metadata_.state = sum_of_parts(digests).text();
  commit_checkpoint(folder_, metadata_, indexes);
  chores_.after();
}

bool BackgroundSave::has_news() const {
  return is_under_way() && (half_ == Half::kWriting ? has_ended(writing_) : has_ended(committing_));
}

/// The text of an index is not read but where it is needed.
std::vector<BackgroundSave::Written> BackgroundSave::parts_of_all() const {
  const auto texts = texts_of_all_ranks(mesh_, written_.digest + index_text(written_.index));
  std::vector<Written> parts;
  if (!is_first()) return parts;
  constexpr size_t kDigits = 32;
  for (const auto& text : std::set(texts.begin(), texts.end()))  // ranks of one process say the same
    parts.push_back({text.substr(0, kDigits), parse_index(text.substr(kDigits), folder_, Coverage::kPart)});
  return parts;
}

void BackgroundSave::end_writing() {
  agreed(mesh_, [&] { written_ = writing_.get(); });
  if (is_one_process()) return;
  auto parts = parts_of_all();
  half_ = Half::kCommitting;
  if (is_first()) committing_ = std::async(std::launch::async, [this, all = std::move(parts)] { commit(all); });
}

void BackgroundSave::meet() {
  const auto half = std::exchange(half_, Half::kNone);
  if (half == Half::kWriting) end_writing();
  if (half == Half::kCommitting)
    agreed(mesh_, [&] {
      if (committing_.valid()) committing_.get();
    });
}

void BackgroundSave::finish() {
  while (is_under_way()) {
    const auto waits = [&] {
      return half_ == Half::kWriting ? !has_ended(writing_, kHeartbeat) : !has_ended(committing_, kHeartbeat);
    };
    while (is_one_process() ? waits() : any_rank(mesh_, waits())) {
    }
    meet();
  }
}

}  // namespace lockstep::trainer
