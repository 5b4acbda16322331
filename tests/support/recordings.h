#pragma once
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "replay/format/datasets.h"
#include "replay/format/dtypes.h"
#include "replay/format/recording.h"

/// Random recordings that satisfy replay::validate().
namespace lockstep::testing {

/// Draws the parts of a recording; empty ones are as likely as others.
class RandomRecording {
 public:
  explicit RandomRecording(uint64_t seed, std::size_t size = 20) : engine_(seed), size_(size) {}

  replay::StepRecording make() {
    make_header();
    make_batch();
    make_tables();
    make_pieces();
    if (r_.has_state) make_state();
    return r_;
  }

 private:
  uint64_t up_to(uint64_t most) { return std::uniform_int_distribution<uint64_t>(0, most)(engine_); }
  int32_t int_up_to(int32_t most) { return static_cast<int32_t>(up_to(static_cast<uint64_t>(most))); }
  std::size_t some() { return up_to(3) == 0 ? 0 : up_to(size_); }
  uint64_t word() { return engine_(); }
  Digest any_digest() { return {word(), word()}; }

  std::string text(std::size_t most) {
    static constexpr std::string_view kLetters = "abcXYZ019._-[]=, \"\n\xc3\xa9";
    std::string text(up_to(most), ' ');
    for (auto& letter : text) letter = kLetters[up_to(kLetters.size() - 1)];
    return text;
  }

  std::string word_text(std::size_t most) {
    auto result = "k" + text(most - 1);
    std::erase_if(result, [](char c) { return c == '\n' || c == '='; });
    return result;
  }

  replay::Bytes bytes(std::size_t count) {
    replay::Bytes result(count);
    for (auto& byte : result) byte = static_cast<std::byte>(word());
    return result;
  }

  std::string hexadecimal_digits(std::size_t count) {
    std::string digits(count, '0');
    for (auto& digit : digits) digit = "0123456789abcdef"[up_to(15)];
    return digits;
  }

  void make_header() {
    r_.world = 1 + int_up_to(100);
    r_.rank = int_up_to(r_.world - 1);
    r_.step = static_cast<int64_t>(up_to(1000));
    r_.complete = up_to(1) == 0;
    if (!r_.complete) r_.reason = text(100);
    r_.job = text(500);
    for (auto i = some(); i > 0; --i) r_.machine.emplace_back(word_text(10), word_text(30));
    r_.first_sample = static_cast<int64_t>(up_to(1000));
    r_.has_state = up_to(1) == 0;
    if (up_to(1) == 0) r_.state_digest = hexadecimal_digits(32);
  }

  void make_batch() {
    r_.rows = static_cast<int64_t>(some());
    r_.seq_len = static_cast<int64_t>(some());
    r_.next_sample = r_.first_sample + r_.rows;
    const auto count = static_cast<std::size_t>(r_.rows * r_.seq_len);
    for (auto* samples : {&r_.tokens, &r_.labels})
      for (std::size_t i = 0; i < count; ++i) samples->push_back(static_cast<int32_t>(word()));
    if (r_.rows % 2 == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      const bool begins = i % static_cast<std::size_t>(r_.seq_len) == 0 || r_.tokens[i] % 3 == 0;
      r_.positions.push_back(begins ? 0 : r_.positions.back() + 1);
    }
  }

  replay::Name name() { return static_cast<replay::Name>(up_to(r_.names.size() - 1)); }
  replay::RecordedId id() {
    return {static_cast<uint8_t>(up_to(7)), static_cast<int32_t>(word()), name(), name(),
            static_cast<uint32_t>(word())};
  }
  int8_t dtype() {
    const auto all = replay::all_dtypes();
    return all[up_to(all.size() - 1)].number;
  }

  /// Texts that are there once.
  std::vector<std::string> different_texts(std::size_t most) {
    std::set<std::string> texts;
    for (auto i = some(); i > 0; --i) texts.insert(text(most));
    return {texts.begin(), texts.end()};
  }

  void make_tables() {
    for (const auto& name : different_texts(replay::kScalarNameSize - 1)) r_.scalars.push_back({name, word()});
    r_.names = different_texts(40);
    if (r_.names.empty()) return;  // nothing can be named
    uint64_t time = 0;
    for (auto i = some(); i > 0; --i) {
      const auto begin = time + up_to(1000);
      r_.ops.push_back({id(), begin, time = begin + up_to(1000)});
    }
    for (uint32_t op = 0; op < r_.ops.size(); ++op)
      for (auto count = up_to(2), index = uint64_t{0}; index < count; ++index) make_result(op, index);
  }

  void make_result(uint32_t op, uint64_t index) {
    const auto kind = static_cast<replay::ResultKind>(up_to(2));
    const bool is_known = kind == replay::ResultKind::kDigest;
    r_.results.push_back(
        {op, static_cast<uint32_t>(index), kind, name(), is_known ? word() : 0, is_known ? any_digest() : Digest{}});
  }

  void make_pieces() {
    const bool keeps = up_to(3) != 0;
    uint64_t time = 0;
    std::map<replay::Name, uint64_t> numbers;
    for (auto i = r_.names.empty() ? 0 : some(); i > 0; --i) {
      const auto begin = time + up_to(1000), first = r_.pieces.size();
      const auto senders = up_to(std::min<uint64_t>(3, static_cast<uint64_t>(r_.world)));
      for (auto tensor = senders == 0 ? 0 : up_to(2), t = uint64_t{0}; t < tensor; ++t)
        for (uint64_t source = 0; source < senders; ++source) make_piece(source, t, keeps);
      const auto mesh = name();
      r_.collectives.push_back({id(), numbers[mesh]++, mesh, name(), static_cast<uint8_t>(up_to(3)), dtype(),
                                static_cast<uint32_t>(word()), word(), static_cast<uint32_t>(first),
                                static_cast<uint32_t>(r_.pieces.size() - first), begin, time = begin + up_to(1000)});
    }
  }

  /// New bytes, or such as an earlier piece has.
  void make_piece(uint64_t source, uint64_t tensor, bool keeps) {
    replay::RecordedPiece piece{static_cast<int32_t>(source), static_cast<uint32_t>(tensor), up_to(4 * size_),
                                replay::kNoPayload, any_digest()};
    if (keeps && !r_.pieces.empty() && up_to(3) == 0) {
      const auto& earlier = r_.pieces[up_to(r_.pieces.size() - 1)];
      piece.bytes = earlier.bytes, piece.offset = earlier.offset, piece.digest = earlier.digest;
    } else if (keeps) {
      const auto more = bytes(piece.bytes);
      piece.offset = r_.payload.size();
      r_.payload.insert(r_.payload.end(), more.begin(), more.end());
    }
    r_.pieces.push_back(piece);
  }

  void make_state() {
    std::vector<std::string> names;
    for (auto i = some(); i > 0; --i) names.push_back(word_text(60));
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const auto& name : names) {
      const auto number = dtype();
      std::vector<int64_t> sizes(up_to(4));
      auto count = replay::find_dtype(number)->size;
      for (auto& size : sizes) count *= static_cast<std::size_t>(size = int_up_to(4));
      r_.state.push_back({name, number, sizes, bytes(count)});
    }
  }

  std::mt19937_64 engine_;
  std::size_t size_;
  replay::StepRecording r_;
};

inline replay::StepRecording random_recording(uint64_t seed, std::size_t size = 20) {
  return RandomRecording(seed, size).make();
}

/// One collective more, of one piece of so many bytes.
inline void add_payload(replay::StepRecording& recording, std::size_t bytes) {
  if (recording.names.empty()) recording.names.emplace_back();
  for (auto& piece : recording.pieces)
    if (piece.offset == replay::kNoPayload) piece.bytes = 0, piece.offset = recording.payload.size();
  const auto time = recording.collectives.empty() ? 0 : recording.collectives.back().end;
  const auto first = static_cast<uint32_t>(recording.pieces.size());
  const auto number = std::count_if(recording.collectives.begin(), recording.collectives.end(),
                                    [](const auto& collective) { return collective.mesh == 0; });
  recording.collectives.push_back({{}, static_cast<uint64_t>(number), 0, 0, 0, 6, 1, 1, first, 1, time, time});
  recording.pieces.push_back({0, 0, bytes, recording.payload.size(), {}});
  recording.payload.resize(recording.payload.size() + bytes, std::byte{7});
}

}  // namespace lockstep::testing
