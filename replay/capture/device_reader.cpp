#include "replay/capture/device_reader.h"

#include <algorithm>
#include <utility>

#include "core/digest/tensor_digest.h"
#include "runtime/plain/tensor_bytes.h"

namespace lockstep::replay {
namespace {

/// There is room for a digest, of 8 KiB, for each so many bytes of copies.
constexpr std::size_t kBytesForAPiece = 1024;

}  // namespace

DeviceReader::DeviceReader(c10::Device device, std::unique_ptr<DeviceQueue> queue, std::size_t limit_bytes)
    : device_(device), queue_(std::move(queue)), room_{limit_bytes / kBytesForAPiece, limit_bytes} {
  queue_->make_room(room_.pieces, room_.bytes);
}

void DeviceReader::read(at::Tensor tensor, Wanted wanted, Work work) {
  const auto there = tensor.to(device_).contiguous();
  const auto bytes = bytes_of(there);
  const Amount own{tensor_pieces(bytes.size()), wanted == Wanted::kDigestAndBytes ? bytes.size() : 0};
  require_room(own);
  queue_->digest(bytes, batch_.pieces);
  if (own.bytes > 0) queue_->copy(bytes, batch_.bytes);
  waiting_.push_back({std::move(work), batch_, own});
  batch_.pieces += own.pieces;
  batch_.bytes += own.bytes;
}

void DeviceReader::require_room(const Amount& more) {
  if (batch_.pieces + more.pieces <= room_.pieces && batch_.bytes + more.bytes <= room_.bytes) return;
  end_batch();
  room_ = {std::max(room_.pieces, more.pieces), std::max(room_.bytes, more.bytes)};
  queue_->make_room(room_.pieces, room_.bytes);
}

void DeviceReader::end_batch() {
  if (waiting_.empty()) return;
  queue_->wait(batch_.pieces);
  try {
    for (const auto& waiting : waiting_)
      if (!error_) run(waiting);
  } catch (...) {
    error_ = std::current_exception();
  }
  waiting_.clear();
  batch_ = {};
}

void DeviceReader::run(const Waiting& waiting) {
  const auto digests = queue_->digests().subspan(waiting.before.pieces, waiting.own.pieces);
  waiting.work(joined_tensor_digest(digests), queue_->bytes().subspan(waiting.before.bytes, waiting.own.bytes));
}

void DeviceReader::finish() {
  end_batch();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace lockstep::replay
