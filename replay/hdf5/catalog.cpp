#include "replay/hdf5/catalog.h"

#include <cstring>

#include "core/error.h"
#include "replay/format/datasets.h"

namespace lockstep::replay {
namespace {

/// Numbers of 8 bytes; texts and lists with their length before them.
class Writer {
 public:
  void number(uint64_t value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    text_.append(bytes, sizeof(value));
  }
  void signed_number(int64_t value) { number(static_cast<uint64_t>(value)); }
  void text(std::string_view value) {
    number(value.size());
    text_ += value;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  int64_t signed_number() { return static_cast<int64_t>(number()); }
  std::string text() { return std::string(take(number())); }
  /// How many things of at least `size` bytes follow.
  std::size_t count(std::size_t size) {
    const auto value = number();
    if (value > text_.size() / size) fail<FileError>("the reader's answer is cut off");
    return value;
  }
  bool at_end() const { return text_.empty(); }

 private:
  std::string_view take(uint64_t size) {
    if (size > text_.size()) fail<FileError>("the reader's answer is cut off");
    const auto taken = text_.substr(0, size);
    text_.remove_prefix(size);
    return taken;
  }

  std::string_view text_;
};

void write_entry(Writer& writer, const CatalogEntry& entry) {
  writer.text(entry.path);
  writer.text(entry.dtype);
  writer.number(entry.element_size);
  writer.number(entry.sizes.size());
  for (const auto size : entry.sizes) writer.number(size);
  writer.number(entry.offset);
}

CatalogEntry read_entry(Reader& reader) {
  CatalogEntry entry;
  entry.path = reader.text();
  entry.dtype = reader.text();
  entry.element_size = reader.number();
  entry.sizes.resize(reader.count(sizeof(uint64_t)));
  for (auto& size : entry.sizes) size = reader.number();
  entry.offset = reader.number();
  return entry;
}

}  // namespace

std::string encode(const Catalog& catalog) {
  Writer writer;
  for (const auto value : {catalog.rank, catalog.world, catalog.step, catalog.complete, catalog.has_state,
                           catalog.first_sample, catalog.next_sample})
    writer.signed_number(value);
  writer.text(catalog.state_digest);
  writer.number(catalog.entries.size());
  for (const auto& entry : catalog.entries) write_entry(writer, entry);
  return writer.take();
}

Catalog decode_catalog(std::string_view text) {
  constexpr std::size_t kLeastEntry = 5 * sizeof(uint64_t);
  Reader reader(text);
  Catalog catalog;
  for (auto* value : {&catalog.rank, &catalog.world, &catalog.step, &catalog.complete, &catalog.has_state,
                      &catalog.first_sample, &catalog.next_sample})
    *value = reader.signed_number();
  catalog.state_digest = reader.text();
  const auto count = reader.count(kLeastEntry);
  for (std::size_t i = 0; i < count; ++i) catalog.entries.push_back(read_entry(reader));
  if (!reader.at_end()) fail<FileError>("the reader's answer goes on behind its end");
  return catalog;
}

}  // namespace lockstep::replay
