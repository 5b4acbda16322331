#include "core/files/text_lines.h"

#include <algorithm>
#include <utility>

#include "core/files/atomic_file.h"

namespace lockstep {
namespace {

constexpr int64_t kBlock = 1 << 20;

/// Calls `visit(bytes)` for the blocks of a part.
template <class Visit>
void for_each_block(const RandomAccessFile& file, FileRange part, const Visit& visit) {
  std::string block;
  for (auto at = part.begin; at < part.end; at += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, part.end - at)));
    file.read(at, std::as_writable_bytes(std::span(block)));
    visit(std::string_view(block));
  }
}

/// A line as it grows, block by block.
class GrowingLine {
 public:
  void add(std::string_view bytes) {
    if (bytes.empty()) return;
    head_ += bytes.substr(0, TextLine::kMostHead - head_.size());
    last_ = bytes.back();
    size_ += static_cast<int64_t>(bytes.size());
  }
  /// Its end, and the beginning of the next.
  TextLine finish(std::string& head, bool is_whole) {
    head = std::exchange(head_, {});
    const auto end = begin_ + std::exchange(size_, 0) + (is_whole ? 1 : 0);
    return {head, std::exchange(last_, '\0'), {std::exchange(begin_, end), end}, is_whole};
  }
  bool is_empty() const { return size_ == 0; }

 private:
  std::string head_;
  char last_ = '\0';
  int64_t begin_ = 0, size_ = 0;
};

}  // namespace

void for_each_line(const RandomAccessFile& file, const std::function<void(const TextLine&)>& visit) {
  GrowingLine line;
  std::string head;
  for_each_block(file, {0, file.size()}, [&](std::string_view rest) {
    for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      line.add(rest.substr(0, end));
      visit(line.finish(head, /*is_whole=*/true));
      rest.remove_prefix(end + 1);
    }
    line.add(rest);
  });
  if (!line.is_empty()) visit(line.finish(head, /*is_whole=*/false));
}

void keep_ranges(const RandomAccessFile& file, std::span<const FileRange> ranges) {
  AtomicFile kept(file.path());
  for (size_t i = 0; i < ranges.size();) {
    auto run = ranges[i++];
    for (; i < ranges.size() && ranges[i].begin == run.end; ++i) run.end = ranges[i].end;  // lines are short
    for_each_block(file, run, [&](std::string_view bytes) { kept.write(bytes); });
  }
  kept.commit();
}

}  // namespace lockstep
