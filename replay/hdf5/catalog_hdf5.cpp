#include "replay/hdf5/catalog_hdf5.h"

#include <algorithm>
#include <array>
#include <set>

#include "replay/format/datasets.h"
#include "replay/hdf5/image_hdf5.h"
#include "replay/hdf5/types_hdf5.h"

namespace lockstep::replay {
namespace {

using hdf5::Handle;
using hdf5::read_check;

/// In memory, with plugins switched off.
Handle open_file(std::span<const std::byte> file) {
  read_check(!file.empty(), "an empty file");
  H5PLset_loading_state(0);
  auto opened = hdf5::open_image(file);
  read_check(opened.get() >= 0, "no whole HDF5 file");
  hsize_t user_block = 0;
  const Handle creation(H5Fget_create_plist(opened.get()));
  read_check(H5Pget_userblock(creation.get(), &user_block) >= 0 && user_block == 0, "a user block");
  return opened;
}

/// A scalar attribute of exactly this type.
void read_attribute(hid_t object, const char* name, const Handle& type, void* value) {
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
  read_check(attribute.get() >= 0, "the attribute {} is missing", name);
  const Handle stored(H5Aget_type(attribute.get())), space(H5Aget_space(attribute.get()));
  const bool same = H5Tequal(stored.get(), type.get()) > 0 && H5Tcommitted(stored.get()) == 0 &&
                    H5Sget_simple_extent_type(space.get()) == H5S_SCALAR;
  read_check(same, "the attribute {} is of another type", name);
  read_check(H5Aread(attribute.get(), type.get(), value) >= 0, "the attribute {} cannot be read", name);
}

int64_t read_number(hid_t object, const char* name) {
  int64_t value = 0;
  read_attribute(object, name, Handle(H5Tcopy(H5T_STD_I64LE)), &value);
  return value;
}

/// The text of a string attribute, of any length up to kMaxName.
std::string read_text(hid_t object, const char* name) {
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
  read_check(attribute.get() >= 0, "the attribute {} is missing", name);
  const Handle stored(H5Aget_type(attribute.get()));
  const auto size = H5Tget_size(stored.get());
  read_check(size > 0 && size <= kMaxName, "the attribute {} has {} bytes", name, size);
  std::string text(size, '\0');
  read_attribute(object, name, hdf5::string_type(size), text.data());
  text.pop_back();  // the zero at the end
  return text;
}

/// One name for it, and exactly so many attributes.
void check_object(hid_t object, H5O_type_t type, hsize_t attributes, const std::string& path) {
  H5O_info_t info{};
  read_check(H5Oget_info2(object, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS) >= 0 && info.type == type,
             "{} is something else", path);
  read_check(info.rc == 1, "{} has several names", path);
  read_check(info.num_attrs == attributes, "{} has {} attributes, {} are due", path, info.num_attrs, attributes);
}

struct Links {
  std::vector<std::string> names;
  bool hard = true;
};

herr_t note_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
  auto& links = *static_cast<Links*>(data);
  links.names.emplace_back(name);
  links.hard = links.hard && info->type == H5L_TYPE_HARD;
  return links.hard && links.names.size() <= kMaxRows && links.names.back().size() <= kMaxName ? 0 : -1;
}

/// The names in a group, in their order.
std::vector<std::string> names_in(hid_t group, const char* path) {
  Links links;
  const auto done = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, note_link, &links);
  if (!links.hard) fail<FileError>("{} has a link in it that is not a hard one: {}", path, links.names.back());
  read_check(done >= 0, "{} cannot be listed", path);
  return links.names;
}

void check_names(hid_t group, const char* path, const std::set<std::string>& expected) {
  const auto names = names_in(group, path);
  for (const auto& name : names) read_check(expected.contains(name), "{} holds {}, which is unknown", path, name);
  for (const auto& name : expected)
    read_check(std::find(names.begin(), names.end(), name) != names.end(), "{} lacks {}", path, name);
  read_check(names.size() == expected.size(), "{} holds a name twice", path);
}

Handle open_group(hid_t file, const char* path) {
  Handle group(H5Gopen2(file, path, H5P_DEFAULT));
  read_check(group.get() >= 0, "{} cannot be opened", path);
  check_object(group.get(), H5O_TYPE_GROUP, 0, path);
  return group;
}

std::vector<uint64_t> sizes_of(hid_t dataset, const std::string& path) {
  const Handle space(H5Dget_space(dataset));
  const auto kind = H5Sget_simple_extent_type(space.get());
  read_check(kind == H5S_SCALAR || kind == H5S_SIMPLE, "{} has no size", path);
  const int dimensions = H5Sget_simple_extent_ndims(space.get());
  std::array<hsize_t, H5S_MAX_RANK> sizes{}, most{};
  read_check(dimensions >= 0 && dimensions <= H5S_MAX_RANK && (dimensions == 0) == (kind == H5S_SCALAR),
             "{} has {} dimensions", path, dimensions);
  read_check(H5Sget_simple_extent_dims(space.get(), sizes.data(), most.data()) == dimensions && sizes == most,
             "{} can grow", path);
  return {sizes.begin(), sizes.begin() + dimensions};
}

/// Contiguous in this file, as it is. Returns the offset.
uint64_t check_storage(hid_t dataset, uint64_t bytes, const std::string& path) {
  const Handle options(H5Dget_create_plist(dataset));
  read_check(H5Pget_layout(options.get()) == H5D_CONTIGUOUS, "{} is not contiguous", path);
  read_check(H5Pget_external_count(options.get()) == 0, "{} lies in another file", path);
  read_check(H5Pget_nfilters(options.get()) == 0, "{} has filters", path);
  const auto offset = H5Dget_offset(dataset);
  if (bytes == 0) return 0;
  read_check(H5Dget_storage_size(dataset) == bytes && offset != HADDR_UNDEF, "{} is not stored whole", path);
  return offset;
}

Handle expected_type(const Dataset& dataset, std::size_t stored_size) {
  switch (dataset.content) {
    case Content::kText:
    case Content::kNames:
      return hdf5::string_type(stored_size);
    case Content::kSamples:
      return Handle(H5Tcopy(H5T_STD_I32LE));
    case Content::kTable:
      return hdf5::row_type(*dataset.columns);
    case Content::kBytes:
    case Content::kTensor:
      return Handle(H5Tcopy(H5T_STD_U8LE));
  }
  fail<InternalError>("content {}", static_cast<int>(dataset.content));
}

/// The entry of an open dataset, whose type has to be what `expected` makes of the stored size.
template <class Expected>
CatalogEntry entry_of(hid_t dataset, const std::string& path, std::size_t file_size, const Expected& expected) {
  const Handle type(H5Dget_type(dataset));
  const auto size = H5Tget_size(type.get());
  read_check(size > 0 && size <= file_size, "{} has elements of {} bytes", path, size);
  read_check(H5Tcommitted(type.get()) == 0 && H5Tequal(type.get(), expected(size).get()) > 0, "{} is of another type",
             path);
  CatalogEntry entry{path, {}, size, sizes_of(dataset, path), 0};
  uint64_t bytes = size;
  for (const auto n : entry.sizes)
    read_check(!__builtin_mul_overflow(bytes, n, &bytes), "{} has more bytes than the file", path);
  entry.offset = check_storage(dataset, bytes, path);
  return entry;
}

Handle open_dataset(hid_t file, const std::string& path, hsize_t attributes) {
  Handle dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  read_check(dataset.get() >= 0, "{} cannot be opened", path);
  check_object(dataset.get(), H5O_TYPE_DATASET, attributes, path);
  return dataset;
}

CatalogEntry tensor_entry(hid_t file, const std::string& path, std::size_t file_size) {
  const auto dataset = open_dataset(file, path, 1);
  const auto name = read_text(dataset.get(), "dtype");
  const auto* dtype = find_dtype(name);
  read_check(dtype != nullptr, "{} has dtype '{}'", path, name);
  auto entry = entry_of(dataset.get(), path, file_size, [&](std::size_t) { return hdf5::element_type(*dtype); });
  entry.dtype = name;
  return entry;
}

void check_version(hid_t root) {
  read_check(H5Aexists(root, "format") > 0 && read_text(root, "format") == kFormat, "no recording of Lockstep");
  const auto version = read_number(root, "version");
  read_check(version <= kVersion, "made by a newer Lockstep: version {}, this one reads {}", version, kVersion);
  read_check(version >= 1, "version {}, which never was", version);
  read_check(version == kVersion,
             "made by an older Lockstep: version {}, this one reads {}. Record again, or use the build that /machine "
             "names (h5dump -d /machine)",
             version, kVersion);
}

Catalog read_header(hid_t root) {
  check_version(root);
  check_object(root, H5O_TYPE_GROUP, 10, "/");
  return {read_number(root, "rank"),        read_number(root, "world"),      read_number(root, "step"),
          read_number(root, "complete"),    read_number(root, "has_state"),  read_number(root, "first_sample"),
          read_number(root, "next_sample"), read_text(root, "state_digest"), {}};
}

void check_groups(hid_t root, bool has_state) {
  std::set<std::string> expected{"reason", "job",     "machine",     "batch",  "scalars", "names",
                                 "ops",    "results", "collectives", "pieces", "payload"};
  if (has_state) expected.insert("state");
  check_names(root, "/", expected);
  const auto batch = open_group(root, "/batch");
  check_names(batch.get(), "/batch", {"tokens", "labels", "positions"});
}

void read_state(hid_t root, std::size_t file_size, Catalog& catalog) {
  const auto state = open_group(root, "/state");
  for (const auto& name : names_in(state.get(), "/state"))
    catalog.entries.push_back(tensor_entry(root, "/state/" + name, file_size));
}

}  // namespace

Catalog read_catalog(std::span<const std::byte> file) {
  const auto opened = open_file(file);
  const Handle root(H5Gopen2(opened.get(), "/", H5P_DEFAULT));
  read_check(root.get() >= 0, "/ cannot be opened");
  auto catalog = read_header(root.get());
  check_groups(root.get(), catalog.has_state != 0);
  for (const auto& dataset : kDatasets) {
    const auto open = open_dataset(root.get(), dataset.path, 0);
    catalog.entries.push_back(entry_of(open.get(), dataset.path, file.size(),
                                       [&](std::size_t size) { return expected_type(dataset, size); }));
  }
  if (catalog.has_state != 0) read_state(root.get(), file.size(), catalog);
  return catalog;
}

}  // namespace lockstep::replay
