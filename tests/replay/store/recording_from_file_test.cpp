// A file is read within the limits of its own size.
#include <gtest/gtest.h>

#include "replay/format/datasets.h"
#include "replay/format/dtypes.h"
#include "replay/hdf5/catalog_hdf5.h"
#include "replay/hdf5/hdf5.h"
#include "replay/store/recording_file.h"
#include "tests/support/hdf5_edit.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::edited;
using lockstep::testing::Handle;
using lockstep::testing::message_of;

/// An empty file in which objects share what they say of their sizes.
Handle create_sharing_file(const std::string& path) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS)), creation(H5Pcreate(H5P_FILE_CREATE));
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  H5Pset_shared_mesg_nindexes(creation.get(), 1);
  H5Pset_shared_mesg_index(creation.get(), 0, H5O_SHMESG_ALL_FLAG, 20);
  return Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));
}

herr_t copy_attribute(hid_t from, const char* name, const H5A_info_t*, void* to) {
  const Handle attribute(H5Aopen(from, name, H5P_DEFAULT));
  const Handle type(H5Aget_type(attribute.get())), space(H5Aget_space(attribute.get()));
  const Handle copy(H5Acreate2(*static_cast<hid_t*>(to), name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
  Bytes value(H5Tget_size(type.get()));
  return H5Aread(attribute.get(), type.get(), value.data()) < 0 ? -1 : H5Awrite(copy.get(), type.get(), value.data());
}

herr_t copy_object(hid_t from, const char* name, const H5L_info_t*, void* to) {
  return H5Ocopy(from, name, *static_cast<hid_t*>(to), name, H5P_DEFAULT, H5P_DEFAULT);
}

/// A recording with so many tensors in its state, each of no elements and as many sizes as there can be.
Bytes file_with(int count) {
  const TemporaryFolder folder;
  StepRecording recording;
  recording.has_state = true;
  recording.state = {{"0", find_dtype("int8")->number, std::vector<int64_t>(kMaxDimensions), {}}};
  edited(to_file(recording), [&](hid_t plain) {
    const auto file = create_sharing_file(folder.file("x.h5"));
    hid_t to = file.get();
    LOCKSTEP_CHECK(H5Aiterate2(plain, H5_INDEX_NAME, H5_ITER_INC, nullptr, copy_attribute, &to) >= 0);
    LOCKSTEP_CHECK(H5Literate(plain, H5_INDEX_NAME, H5_ITER_INC, nullptr, copy_object, &to) >= 0);
    for (int i = 1; i < count; ++i)
      LOCKSTEP_CHECK(H5Ocopy(plain, "/state/0", to, fmt::format("/state/{}", i).c_str(), H5P_DEFAULT, H5P_DEFAULT) >=
                     0);
  });
  const auto text = file_content(folder.file("x.h5"));
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

std::size_t catalog_size(const Bytes& file) {
  const hdf5::Session session;
  return encode(read_catalog(file)).size();
}

TEST(FromFile, AnAnswerIsAtMost64KiBLongerThanTheFile) {
  constexpr std::size_t kMore = 64 << 10;
  const auto small = file_with(500), large = file_with(1500);
  EXPECT_GT(catalog_size(small), small.size());
  EXPECT_LT(catalog_size(small), small.size() + kMore);
  EXPECT_EQ(from_file(small, "x.h5").state.size(), 500U);
  EXPECT_GT(catalog_size(large), large.size() + kMore);
  EXPECT_EQ(message_of<FileError>([&] { from_file(large, "x.h5"); }), "x.h5: cannot be read: the reader said too much");
}

}  // namespace
}  // namespace lockstep::replay
