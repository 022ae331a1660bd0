#include "services/dashboard/http/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tollgate::dashboard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Page, TheBaseUrlIsEscaped) {
  EXPECT_THAT(PageHtml("http://x/\"><script>"), Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace tollgate::dashboard
