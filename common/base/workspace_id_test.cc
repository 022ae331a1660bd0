#include "common/base/workspace_id.h"

#include <gtest/gtest.h>

#include <string>

namespace tollgate {
namespace {

TEST(IsWorkspaceId, AcceptsLowerCaseLettersDigitsAndInnerHyphens) {
  for (const std::string& id : {std::string("a"), std::string("0"), std::string("team-7"),
                                std::string("a--b"), std::string(63, 'a')}) {
    EXPECT_TRUE(IsWorkspaceId(id)) << id;
  }
}

TEST(IsWorkspaceId, RejectsEverythingElse) {
  for (const std::string& id :
       {std::string(), std::string("-a"), std::string("a-"), std::string("-"), std::string("Team"),
        std::string("a_b"), std::string("a b"), std::string("\xC3\xA9"), std::string(64, 'a')}) {
    EXPECT_FALSE(IsWorkspaceId(id)) << id;
  }
}

}  // namespace
}  // namespace tollgate
