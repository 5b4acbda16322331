// The types that other readers of HDF5 see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/hdf5/types_hdf5.h"
#include "tests/support/message_of.h"

namespace lockstep::replay::hdf5 {
namespace {

TEST(ElementTypes, AreThoseOfTheirDtypes) {
  const Session session;
  for (const auto& dtype : all_dtypes()) {
    const auto type = element_type(dtype);
    EXPECT_EQ(H5Tget_size(type.get()), dtype.size) << dtype.name;
    EXPECT_EQ(H5Tget_order(type.get()), H5T_ORDER_LE) << dtype.name;
    EXPECT_EQ(H5Tget_class(type.get()), dtype.kind == ElementKind::kFloat ? H5T_FLOAT : H5T_INTEGER) << dtype.name;
    if (dtype.kind != ElementKind::kFloat)
      EXPECT_EQ(H5Tget_sign(type.get()), dtype.kind == ElementKind::kSigned ? H5T_SGN_2 : H5T_SGN_NONE) << dtype.name;
  }
  EXPECT_GT(H5Tequal(element_type(*find_dtype("float32")).get(), H5T_IEEE_F32LE), 0);
  EXPECT_GT(H5Tequal(element_type(*find_dtype("float64")).get(), H5T_IEEE_F64LE), 0);
}

TEST(StringTypes, AreOfUtf8AndEndWithAZero) {
  const Session session;
  const auto type = string_type(7);
  EXPECT_EQ(H5Tget_class(type.get()), H5T_STRING);
  EXPECT_EQ(H5Tget_size(type.get()), 7U);
  EXPECT_EQ(H5Tget_strpad(type.get()), H5T_STR_NULLTERM);
  EXPECT_EQ(H5Tget_cset(type.get()), H5T_CSET_UTF8);
}

TEST(StringTypes, AreNotMadeOfNoBytes) {
  const Session session;
  EXPECT_THAT(lockstep::testing::message_of<InternalError>([] { string_type(0); }),
              ::testing::HasSubstr("a string of 0 bytes"));
}

}  // namespace
}  // namespace lockstep::replay::hdf5
