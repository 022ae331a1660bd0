#include "common/admin/paging.h"

#include <gtest/gtest.h>

namespace tollgate::admin {
namespace {

TEST(AdminPagingTest, SizesHaveADefaultAndALimit) {
  EXPECT_EQ(*PageSize(0), 50);
  EXPECT_EQ(*PageSize(7), 7);
  EXPECT_EQ(*PageSize(1000), 200);
  EXPECT_EQ(PageSize(-1).error().field, "page_size");
}

TEST(AdminPagingTest, ATokenContinuesItsOwnListOnly) {
  const std::string token = EncodePageToken("ListPayments|workspaces/a", "17");
  EXPECT_EQ(*DecodePageToken("ListPayments|workspaces/a", token), "17");
  EXPECT_EQ(*DecodePageToken("ListPayments|workspaces/a", ""), "");
  EXPECT_EQ(DecodePageToken("ListPayments|workspaces/b", token).error().field, "page_token");
  for (const char* text : {"x", "00", "0011223344556677"}) {
    EXPECT_FALSE(DecodePageToken("ListPayments|workspaces/a", text).ok()) << text;
  }
}

}  // namespace
}  // namespace tollgate::admin
