// What a reader refuses, one case per line of FORMAT.md's list: files that HDF5 itself finds right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "replay/store/recording_file.h"
#include "tests/support/hdf5_edit.h"
#include "tests/support/recorded_steps.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::edited;
using lockstep::testing::Handle;
using lockstep::testing::message_of;
using lockstep::testing::replace;
using lockstep::testing::set_number;

/// Two names, an op, and a tensor of the state.
StepRecording small_recording() {
  StepRecording recording;
  recording.names = {"", "linear"};
  recording.ops = {{{1, 0, 0, 1, 0}, 5, 9}};
  recording.has_state = true;
  recording.state = {{"weight", 6, {2}, Bytes(8)}};
  return recording;
}

std::string refusal_of(const Bytes& file) {
  return message_of<FileError>([&] { from_file(file, "x.h5"); });
}

std::string refusal_after(const std::function<void(hid_t)>& edit) {
  return refusal_of(edited(to_file(small_recording()), edit));
}

/// The op table as it should be, but for the options.
std::string refusal_of_ops_with(const std::function<void(hid_t)>& set_options) {
  return refusal_after([&](hid_t file) {
    const Handle ops(H5Dopen2(file, "/ops", H5P_DEFAULT)), type(H5Dget_type(ops.get()));
    replace(file, "/ops", type.get(), {4}, set_options);
  });
}

TEST(Refusals, NothingIsChanged) {
  EXPECT_EQ(refusal_after([](hid_t) {}), "no such error");
}

TEST(Refusals, NoRecordingAtAll) {
  EXPECT_EQ(refusal_of({}), "x.h5: an empty file");
  EXPECT_EQ(refusal_of(Bytes(5000)), "x.h5: no whole HDF5 file");
  auto file = to_file(small_recording());
  Bytes shifted(512 + file.size());
  std::copy(file.begin(), file.end(), shifted.begin() + 512);
  EXPECT_EQ(refusal_of(shifted), "x.h5: a user block");
  file.resize(file.size() - 1);
  EXPECT_EQ(refusal_of(file), "x.h5: no whole HDF5 file");
}

/// A file that a build of that version wrote.
TEST(Refusals, ARecordingOfVersion2) {
  std::ifstream sample(LOCKSTEP_SOURCE_DIR "/tests/replay/samples/version-2.h5", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(sample), {});
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  EXPECT_EQ(
      refusal_of(Bytes(bytes, bytes + text.size())),
      "x.h5: made by an older Lockstep: version 2, this one reads 4. Record again, or use the build that /machine "
      "names (h5dump -d /machine)");
}

TEST(Refusals, OtherVersionsAndFormats) {
  EXPECT_EQ(refusal_after([](hid_t file) { set_number(file, "version", 5); }),
            "x.h5: made by a newer Lockstep: version 5, this one reads 4");
  EXPECT_EQ(
      refusal_after([](hid_t file) { set_number(file, "version", 1); }),
      "x.h5: made by an older Lockstep: version 1, this one reads 4. Record again, or use the build that /machine "
      "names (h5dump -d /machine)");
  EXPECT_EQ(refusal_after([](hid_t file) { set_number(file, "version", 0); }), "x.h5: version 0, which never was");
  EXPECT_EQ(refusal_after([](hid_t file) { H5Adelete(file, "format"); }), "x.h5: no recording of Lockstep");
  EXPECT_EQ(refusal_after([](hid_t file) { H5Adelete(file, "version"); }), "x.h5: the attribute version is missing");
}

TEST(Refusals, Attributes) {
  EXPECT_EQ(refusal_after([](hid_t file) { H5Adelete(file, "rank"); }), "x.h5: / has 9 attributes, 10 are due");
  EXPECT_EQ(refusal_after([](hid_t file) { set_number(file, "color", 1); }), "x.h5: / has 11 attributes, 10 are due");
  EXPECT_EQ(refusal_after([](hid_t file) { H5Arename(file, "rank", "rang"); }), "x.h5: the attribute rank is missing");
  EXPECT_EQ(refusal_after([](hid_t file) {
              const Handle ops(H5Dopen2(file, "/ops", H5P_DEFAULT));
              set_number(ops.get(), "color", 1);
            }),
            "x.h5: /ops has 1 attributes, 0 are due");
  EXPECT_EQ(refusal_after([](hid_t file) { set_number(file, "has_state", 2); }), "x.h5: complete 1, has_state 2");
  EXPECT_EQ(refusal_after([](hid_t file) { set_number(file, "world", 0); }), "x.h5: rank 0 of 0");
}

TEST(Refusals, MissingAndUnknownNames) {
  EXPECT_EQ(refusal_after([](hid_t file) { H5Ldelete(file, "/ops", H5P_DEFAULT); }), "x.h5: / lacks ops");
  EXPECT_EQ(refusal_after([](hid_t file) { H5Ldelete(file, "/batch/labels", H5P_DEFAULT); }),
            "x.h5: /batch lacks labels");
  EXPECT_EQ(refusal_after([](hid_t file) { replace(file, "/more", H5T_STD_U8LE, {1}); }),
            "x.h5: / holds more, which is unknown");
  EXPECT_EQ(refusal_after([](hid_t file) { set_number(file, "has_state", 0); }),
            "x.h5: / holds state, which is unknown");
}

TEST(Refusals, Links) {
  EXPECT_EQ(refusal_after([](hid_t file) {
              H5Lmove(file, "/ops", file, "/hidden", H5P_DEFAULT, H5P_DEFAULT);
              H5Lcreate_soft("/hidden", file, "/ops", H5P_DEFAULT, H5P_DEFAULT);
            }),
            "x.h5: / has a link in it that is not a hard one: ops");
  EXPECT_EQ(refusal_after([](hid_t file) {
              H5Ldelete(file, "/ops", H5P_DEFAULT);
              H5Lcreate_external("/etc/passwd", "/x", file, "/ops", H5P_DEFAULT, H5P_DEFAULT);
            }),
            "x.h5: / has a link in it that is not a hard one: ops");
  EXPECT_EQ(refusal_after([](hid_t file) {
              H5Ldelete(file, "/batch/labels", H5P_DEFAULT);
              H5Lcreate_hard(file, "/batch/tokens", file, "/batch/labels", H5P_DEFAULT, H5P_DEFAULT);
            }),
            "x.h5: /batch/tokens has several names");
  EXPECT_EQ(refusal_after([](hid_t file) {
              H5Ldelete(file, "/batch", H5P_DEFAULT);
              H5Lcreate_hard(file, "/", file, "/batch", H5P_DEFAULT, H5P_DEFAULT);
            }),
            "x.h5: / has several names");
}

TEST(Refusals, Storage) {
  const hsize_t chunk = 2;
  const auto chunked = [&](hid_t options) { H5Pset_chunk(options, 1, &chunk); };
  EXPECT_EQ(refusal_of_ops_with(chunked), "x.h5: /ops is not contiguous");
  EXPECT_EQ(refusal_of_ops_with([&](hid_t options) {
              chunked(options);
              H5Pset_shuffle(options);
            }),
            "x.h5: /ops is not contiguous");
  EXPECT_EQ(refusal_of_ops_with([](hid_t options) { H5Pset_layout(options, H5D_COMPACT); }),
            "x.h5: /ops is not contiguous");
  EXPECT_EQ(refusal_of_ops_with([](hid_t options) { H5Pset_external(options, "/etc/passwd", 0, H5F_UNLIMITED); }),
            "x.h5: /ops lies in another file");
  EXPECT_EQ(refusal_of_ops_with([](hid_t options) { H5Pset_alloc_time(options, H5D_ALLOC_TIME_LATE); }),
            "x.h5: /ops is not stored whole");
}

TEST(Refusals, TypesAndSizes) {
  const auto replaced = [](const char* path, hid_t type, const std::vector<hsize_t>& sizes) {
    return refusal_after([&](hid_t file) { replace(file, path, type, sizes); });
  };
  EXPECT_EQ(replaced("/ops", H5T_STD_I32LE, {1}), "x.h5: /ops is of another type");
  EXPECT_EQ(replaced("/batch/tokens", H5T_STD_I32BE, {0, 0}), "x.h5: /batch/tokens is of another type");
  EXPECT_EQ(replaced("/batch/tokens", H5T_STD_I64LE, {0, 0}), "x.h5: /batch/tokens is of another type");
  EXPECT_EQ(replaced("/batch/tokens", H5T_STD_I32LE, {0}), "x.h5: /batch/tokens has 1 dimensions");
  EXPECT_EQ(replaced("/batch/tokens", H5T_STD_I32LE, {0, 3}), "x.h5: tokens and labels have other sizes");
  EXPECT_EQ(replaced("/payload", H5T_STD_U8LE, {2, 2}), "x.h5: /payload has 2 dimensions");
  EXPECT_EQ(replaced("/batch", H5T_STD_U8LE, {2}), "x.h5: /batch cannot be opened");
  EXPECT_EQ(refusal_after([](hid_t file) {
              const Handle type(H5Tcopy(H5T_STD_U8LE));
              H5Tcommit2(file, "/named", type.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
              replace(file, "/payload", type.get(), {1});
              H5Ldelete(file, "/named", H5P_DEFAULT);
            }),
            "x.h5: /payload is of another type");
}

TEST(Refusals, StringsOfOtherKinds) {
  const Handle variable(H5Tcopy(H5T_C_S1)), longer(H5Tcopy(H5T_C_S1));
  H5Tset_size(variable.get(), H5T_VARIABLE);
  H5Tset_size(longer.get(), 1026);
  H5Tset_strpad(longer.get(), H5T_STR_NULLTERM);
  H5Tset_cset(longer.get(), H5T_CSET_UTF8);
  EXPECT_EQ(refusal_after([&](hid_t file) { replace(file, "/names", variable.get(), {2}); }),
            "x.h5: /names is of another type");
  EXPECT_EQ(refusal_after([&](hid_t file) { replace(file, "/names", longer.get(), {2}); }),
            "x.h5: /names are longer than 1024 bytes");
}

TEST(Refusals, TensorsOfTheState) {
  const auto with_dtype = [](const char* text) {
    return refusal_after([&](hid_t file) {
      const Handle tensor(H5Dopen2(file, "/state/weight", H5P_DEFAULT));
      H5Adelete(tensor.get(), "dtype");
      const Handle type(H5Tcopy(H5T_C_S1)), space(H5Screate(H5S_SCALAR));
      H5Tset_size(type.get(), std::strlen(text) + 1);
      H5Tset_strpad(type.get(), H5T_STR_NULLTERM);
      H5Tset_cset(type.get(), H5T_CSET_UTF8);
      const Handle attribute(H5Acreate2(tensor.get(), "dtype", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
      H5Awrite(attribute.get(), type.get(), text);
    });
  };
  EXPECT_EQ(with_dtype("float32"), "no such error");
  EXPECT_EQ(with_dtype("complex64"), "x.h5: /state/weight has dtype 'complex64'");
  EXPECT_EQ(with_dtype("int32"), "x.h5: /state/weight is of another type");
  EXPECT_EQ(refusal_after([](hid_t file) { replace(file, "/state/weight", H5T_IEEE_F32LE, {2}); }),
            "x.h5: /state/weight has 0 attributes, 1 are due");
  EXPECT_EQ(refusal_after([](hid_t file) {
              const Handle group(H5Gcreate2(file, "/state/more", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            }),
            "x.h5: /state/more cannot be opened");
}

TEST(Refusals, NumbersInAFileThatPointNowhere) {
  EXPECT_EQ(refusal_after([](hid_t file) {
              const Handle ops(H5Dopen2(file, "/ops", H5P_DEFAULT)), type(H5Dget_type(ops.get()));
              const Bytes row(H5Tget_size(type.get()), std::byte{1});
              H5Dwrite(ops.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, row.data());
            }),
            "x.h5: /ops row 0: name 16843009 of 2");
}

/// What validate() and the reader say of a recording that to_file() would refuse.
TEST(Refusals, NumbersThatPointNowhere) {
  const auto with = [](const std::function<void(StepRecording&)>& change) {
    auto recording = small_recording();
    recording.results = {{0, 0, ResultKind::kDigest, 1, 8, {}}};
    recording.collectives = {{{1, 0, 0, 1, 0}, 0, 1, 1, 1, 6, 0, 0, 0, 1, 5, 9}};
    recording.pieces = {{0, 0, 5, 0, {}}};
    recording.payload.resize(5);
    change(recording);
    return message_of<BadInput>([&] { to_file(recording); });
  };
  EXPECT_EQ(with([](auto&) {}), "no such error");
  EXPECT_EQ(with([](auto& r) { r.ops[0].id.module = 2; }), "/ops row 0: name 2 of 2");
  EXPECT_EQ(with([](auto& r) { r.ops[0].id.phase = 8; }), "/ops row 0: phase 8");
  EXPECT_EQ(with([](auto& r) { r.ops[0].begin = 10; }), "/ops row 0 ends before it begins");
  EXPECT_EQ(with([](auto& r) { r.results[0].op = 1; }), "/results row 0: op 1 of 1");
  EXPECT_EQ(with([](auto& r) { r.results[0].layout = 9; }), "/results row 0: name 9 of 2");
  EXPECT_EQ(with([](auto& r) { r.results[0].kind = ResultKind{4}; }), "/results row 0: kind 4");
  EXPECT_EQ(with([](auto& r) { r.collectives[0].kind = 5; }), "/collectives row 0: kind 5");
  EXPECT_EQ(with([](auto& r) { r.collectives[0].dtype = 9; }), "/collectives row 0: dtype 9");
  EXPECT_EQ(with([](auto& r) { r.collectives[0].axis = 2; }), "/collectives row 0: name 2 of 2");
  EXPECT_EQ(with([](auto& r) { r.collectives[0].first_piece = ~0U; }),
            "/collectives row 0: pieces 4294967295 to 4294967296 of 1");
  EXPECT_EQ(with([](auto& r) { r.pieces[0].source = 1; }), "/pieces row 0: from rank 1 of 1");
  EXPECT_EQ(with([](auto& r) { r.pieces[0].bytes = 6; }), "/pieces row 0: 6 bytes at 0 of a payload of 5");
  EXPECT_EQ(with([](auto& r) { r.pieces[0].offset = ~0ULL - 1; }),
            "/pieces row 0: 5 bytes at 18446744073709551614 of a payload of 5");
}

TEST(Refusals, ANextSampleThatIsNotBehindTheBatch) {
  const auto with = [](int64_t first, int64_t rows, int64_t next) {
    auto recording = small_recording();
    recording.first_sample = first, recording.rows = rows, recording.next_sample = next;
    return message_of<BadInput>([&] { to_file(recording); });
  };
  EXPECT_EQ(with(24, 12, 36), "no such error");
  EXPECT_EQ(with(24, 12, 37), "12 samples from 24 on are not followed by sample 37");
  EXPECT_EQ(with(24, 0, 0), "0 samples from 24 on are not followed by sample 0");
  EXPECT_EQ(with(INT64_MAX, 1, INT64_MIN),
            "1 samples from 9223372036854775807 on are not followed by sample -9223372036854775808");
}

TEST(Refusals, WhatARecordingMayNotHold) {
  const auto with = [](const std::function<void(StepRecording&)>& change) {
    auto recording = small_recording();
    change(recording);
    return message_of<BadInput>([&] { to_file(recording); });
  };
  EXPECT_EQ(with([](auto& r) { r.job.assign(65537, 'x'); }), "/job has 65537 bytes, more than 65536");
  EXPECT_EQ(with([](auto& r) { r.job = std::string("a\0b", 3); }), "/job has a zero in it");
  EXPECT_EQ(with([](auto& r) { r.reason = "x"; }), "a complete step has no reason to end early: x");
  EXPECT_EQ(with([](auto& r) { r.machine = {{"a=b", "c"}}; }), "/machine has a key 'a=b'");
  EXPECT_EQ(with([](auto& r) { r.machine = {{"a", "b\nc"}}; }), "/machine has a newline in the value of a");
  EXPECT_EQ(with([](auto& r) {
              r.machine = {{"a", std::string(65533, 'x')}};
            }),
            "/machine has 65538 bytes, more than 65536");
  EXPECT_EQ(with([](auto& r) { r.names[1].assign(1025, 'x'); }), "a name in /names has 1025 bytes, more than 1024");
  EXPECT_EQ(with([](auto& r) {
              r.scalars = {{std::string(48, 'x'), 0}};
            }),
            "a name in /scalars has 48 bytes, more than 47");
  EXPECT_EQ(with([](auto& r) { r.rows = r.next_sample = 2; }), "no such error");
  EXPECT_EQ(with([](auto& r) { r.rows = r.next_sample = r.seq_len = 1; }),
            "/batch has 0 tokens and 0 labels for 1 x 1");
  EXPECT_EQ(with([](auto& r) { r.rank = 1; }), "rank 1 of 1");
  EXPECT_EQ(with([](auto& r) { r.step = -1; }), "step -1, first sample 0");
  EXPECT_EQ(with([](auto& r) { r.state_digest.assign(32, '7'); }), "no such error");
  EXPECT_EQ(with([](auto& r) { r.state_digest.assign(31, '7'); }),
            "state_digest '7777777777777777777777777777777' is no digest");
  EXPECT_EQ(with([](auto& r) { r.state_digest.assign(31, '7').push_back('F'); }),
            "state_digest '7777777777777777777777777777777F' is no digest");
  EXPECT_EQ(with([](auto& r) { r.has_state = false; }), "1 tensors of a state that is not recorded");
  EXPECT_EQ(with([](auto& r) { r.state[0].name = "a/b"; }), "'a/b' in /state is no name");
  EXPECT_EQ(with([](auto& r) { r.state[0].dtype = 9; }), "/state/weight has dtype 9");
  EXPECT_EQ(with([](auto& r) {
              r.state[0].sizes = {1 << 30, 1 << 30, 1 << 30};
            }),
            "/state/weight has 8 bytes for sizes [1073741824, 1073741824, 1073741824]");
  EXPECT_EQ(with([](auto& r) { r.state.push_back(r.state[0]); }), "/state/weight is there twice");
}

}  // namespace
}  // namespace lockstep::replay
