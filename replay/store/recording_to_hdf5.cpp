#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "replay/format/datasets.h"
#include "replay/format/validate.h"
#include "replay/hdf5/types_hdf5.h"
#include "replay/store/recording_file.h"

namespace lockstep::replay {
namespace {

using hdf5::Handle;
using Dimensions = std::vector<hsize_t>;

constexpr std::size_t kIncrement = std::size_t{1} << 20;  // what the file in memory grows by

void check(bool done, std::string_view what) { LOCKSTEP_CHECK(done, "HDF5 could not write {}", what); }

/// A file that lives in memory alone.
Handle create_file() {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS));
  // No blocks kept free for small things: a file is as large as what is in it.
  const bool set = H5Pset_fapl_core(access.get(), kIncrement, /*backing_store=*/false) >= 0 &&
                   H5Pset_small_data_block_size(access.get(), 0) >= 0 && H5Pset_meta_block_size(access.get(), 0) >= 0;
  check(set, "to memory");
  Handle file(H5Fcreate("recording", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  check(file.get() >= 0, "to memory");
  return file;
}

Bytes image_of(const Handle& file) {
  check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL) >= 0, "the file");
  const auto size = H5Fget_file_image(file.get(), nullptr, 0);
  check(size > 0, "the file");
  Bytes image(static_cast<std::size_t>(size));
  check(H5Fget_file_image(file.get(), image.data(), image.size()) == size, "the file");
  return image;
}

void set_attribute(hid_t object, const char* name, const Handle& type, const void* value) {
  const Handle space(H5Screate(H5S_SCALAR));
  const Handle attribute(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
  check(attribute.get() >= 0 && H5Awrite(attribute.get(), type.get(), value) >= 0, name);
}

void set_number(hid_t object, const char* name, int64_t value) {
  set_attribute(object, name, Handle(H5Tcopy(H5T_STD_I64LE)), &value);
}

void set_text(hid_t object, const char* name, const std::string& value) {
  set_attribute(object, name, hdf5::string_type(value.size() + 1), value.c_str());
}

/// Contiguous, without times, so that equal recordings are equal files. Without dimensions it is a scalar.
Handle write_dataset(hid_t file, const char* path, const Handle& type, const Dimensions& dimensions, const void* data) {
  const Handle space(dimensions.empty()
                         ? H5Screate(H5S_SCALAR)
                         : H5Screate_simple(static_cast<int>(dimensions.size()), dimensions.data(), nullptr));
  const Handle options(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_layout(options.get(), H5D_CONTIGUOUS);
  H5Pset_fill_time(options.get(), H5D_FILL_TIME_NEVER);
  H5Pset_obj_track_times(options.get(), false);
  Handle dataset(H5Dcreate2(file, path, type.get(), space.get(), H5P_DEFAULT, options.get(), H5P_DEFAULT));
  check(dataset.get() >= 0, path);
  if (std::find(dimensions.begin(), dimensions.end(), 0U) == dimensions.end())
    check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, path);
  return dataset;
}

void write_text(hid_t file, const char* path, const std::string& text) {
  write_dataset(file, path, hdf5::string_type(text.size() + 1), {}, text.c_str());
}

template <class Row>
void write_table(hid_t file, std::size_t table, const std::vector<Row>& rows) {
  const auto& dataset = kDatasets[table];
  const auto packed = pack(*dataset.columns, rows);
  write_dataset(file, dataset.path, hdf5::row_type(*dataset.columns), {rows.size()}, packed.data());
}

std::string machine_text(const StepRecording& recording) {
  std::string text;
  for (const auto& [key, value] : recording.machine) text += fmt::format("{} = {}\n", key, value);
  return text;
}

std::vector<ScalarRow> scalar_rows(const StepRecording& recording) {
  std::vector<ScalarRow> rows(recording.scalars.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(rows[i].name, recording.scalars[i].name.data(), recording.scalars[i].name.size());
    rows[i].bits = recording.scalars[i].bits;
  }
  return rows;
}

void write_names(hid_t file, const std::vector<std::string>& names) {
  std::size_t size = 1;
  for (const auto& name : names) size = std::max(size, name.size() + 1);
  std::string text(size * names.size(), '\0');
  for (std::size_t i = 0; i < names.size(); ++i) names[i].copy(text.data() + i * size, size);
  write_dataset(file, kDatasets[kNameTable].path, hdf5::string_type(size), {names.size()}, text.data());
}

Handle create_group(hid_t file, const char* path) {
  Handle group(H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  check(group.get() >= 0, path);
  return group;
}

void write_header(hid_t file, const StepRecording& recording) {
  set_text(file, "format", kFormat);
  set_number(file, "version", kVersion);
  set_number(file, "rank", recording.rank);
  set_number(file, "world", recording.world);
  set_number(file, "step", recording.step);
  set_number(file, "complete", recording.complete);
  set_number(file, "has_state", recording.has_state);
  set_number(file, "first_sample", recording.first_sample);
  set_number(file, "next_sample", recording.next_sample);
  set_text(file, "state_digest", recording.state_digest);
  write_text(file, kDatasets[kReason].path, recording.reason);
  write_text(file, kDatasets[kJob].path, recording.job);
  write_text(file, kDatasets[kMachine].path, machine_text(recording));
}

void write_batch(hid_t file, const StepRecording& recording) {
  create_group(file, "/batch");
  const Handle type(H5Tcopy(H5T_STD_I32LE));
  const Dimensions sizes{static_cast<hsize_t>(recording.rows), static_cast<hsize_t>(recording.seq_len)};
  write_dataset(file, kDatasets[kTokens].path, type, sizes, recording.tokens.data());
  write_dataset(file, kDatasets[kLabels].path, type, sizes, recording.labels.data());
  const Dimensions packed{recording.positions.empty() ? 0 : sizes[0], sizes[1]};
  write_dataset(file, kDatasets[kPositions].path, type, packed, recording.positions.data());
}

void write_tensors(hid_t group, const std::vector<RecordedTensor>& tensors) {
  for (const auto& tensor : tensors) {
    const auto& dtype = *find_dtype(tensor.dtype);
    const auto dataset = write_dataset(group, tensor.name.c_str(), hdf5::element_type(dtype),
                                       {tensor.sizes.begin(), tensor.sizes.end()}, tensor.bytes.data());
    set_text(dataset.get(), "dtype", std::string(dtype.name));
  }
}

}  // namespace

Bytes to_file(const StepRecording& recording) {
  validate(recording);
  const hdf5::Session session;
  const auto file = create_file();
  write_header(file.get(), recording);
  write_batch(file.get(), recording);
  write_table(file.get(), kScalarTable, scalar_rows(recording));
  write_names(file.get(), recording.names);
  write_table(file.get(), kOpTable, recording.ops);
  write_table(file.get(), kResultTable, recording.results);
  write_table(file.get(), kCollectiveTable, recording.collectives);
  write_table(file.get(), kPieceTable, recording.pieces);
  const Handle byte(H5Tcopy(H5T_STD_U8LE));
  write_dataset(file.get(), kDatasets[kPayload].path, byte, {recording.payload.size()}, recording.payload.data());
  if (recording.has_state) write_tensors(create_group(file.get(), "/state").get(), recording.state);
  return image_of(file);
}

Bytes break_file(const std::string& op, int rank, int64_t step, const std::vector<RecordedTensor>& tensors) {
  StepRecording checked;
  checked.complete = false;
  checked.has_state = true;
  checked.state = tensors;
  validate(checked);
  const hdf5::Session session;
  const auto file = create_file();
  set_text(file.get(), "format", std::string(kBreakFormat));
  set_text(file.get(), "op", op);
  set_number(file.get(), "rank", rank);
  set_number(file.get(), "step", step);
  write_tensors(file.get(), tensors);
  return image_of(file);
}

}  // namespace lockstep::replay
