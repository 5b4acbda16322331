#pragma once
#include <cstring>
#include <vector>

#include "core/digest/tensor_digest.h"
#include "core/digest/xxh3_piece.h"
#include "core/error.h"
#include "replay/capture/device_queue.h"

namespace lockstep::testing {

/// Plays the part of a device's queue with host memory. What was asked for can be seen after wait() only.
class HostQueue final : public replay::DeviceQueue {
 public:
  explicit HostQueue(int& waits) : waits_(waits) {}

  void make_room(std::size_t digests, std::size_t bytes) override {
    LOCKSTEP_CHECK(!is_used_);
    done_digests_.assign(digests, {});
    digests_.assign(digests, {});
    done_bytes_.assign(bytes, std::byte{});
    bytes_.assign(bytes, std::byte{});
  }

  void digest(std::span<const std::byte> bytes, std::size_t place) override {
    is_used_ = true;
    const auto pieces = tensor_pieces(bytes.size());
    LOCKSTEP_CHECK(place + pieces <= done_digests_.size());
    for (std::size_t p = 0; p < pieces; ++p) {
      const auto start = p * kTensorPieceBytes, size = std::min(kTensorPieceBytes, bytes.size() - start);
      done_digests_[place + p] =
          xxh3::of_piece(reinterpret_cast<const xxh3::Byte*>(bytes.data()) + start, static_cast<uint32_t>(size));
    }
  }

  void copy(std::span<const std::byte> bytes, std::size_t place) override {
    LOCKSTEP_CHECK(place + bytes.size() <= done_bytes_.size());
    std::memcpy(done_bytes_.data() + place, bytes.data(), bytes.size());
  }

  void wait(std::size_t digests) override {
    ++waits_;
    is_used_ = false;
    std::copy_n(done_digests_.begin(), digests, digests_.begin());
    bytes_ = done_bytes_;
  }

  std::span<const Digest> digests() const override { return digests_; }
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  int& waits_;
  bool is_used_ = false;
  std::vector<Digest> done_digests_, digests_;
  std::vector<std::byte> done_bytes_, bytes_;
};

}  // namespace lockstep::testing
