#include "core/digest/build_id.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <cstring>
#include <span>

namespace lockstep {
namespace {

constexpr size_t round_up(size_t bytes) { return (bytes + 3) / 4 * 4; }

/// The build id in a segment of notes, or nothing.
std::string find_in(std::span<const unsigned char> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, notes.data(), sizeof(note));
    const size_t name = sizeof(note), value = name + round_up(note.n_namesz), end = value + round_up(note.n_descsz);
    if (end > notes.size()) break;
    const bool is_gnu = note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID)
      return fmt::format("{:02x}", fmt::join(notes.subspan(value, note.n_descsz), ""));
    notes = notes.subspan(end);
  }
  return {};
}

/// Of the first object, which is the program itself.
int visit(dl_phdr_info* object, size_t, void* out) {
  auto& id = *static_cast<std::string*>(out);
  for (const auto& segment : std::span(object->dlpi_phdr, object->dlpi_phnum))
    if (segment.p_type == PT_NOTE && id.empty())
      id = find_in({reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz});
  return 1;
}

}  // namespace

std::string build_id() {
  std::string id;
  dl_iterate_phdr(visit, &id);
  return id.empty() ? "unknown" : id;
}

}  // namespace lockstep
