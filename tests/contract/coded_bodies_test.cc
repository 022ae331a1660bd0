// Request bodies with a Content-Encoding, on every POST endpoint. See
// docs/design/hostile-inputs.md H73, decisions 19 and 46.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "common/coding/testing/encode.h"
#include "tests/contract/endpoint_forms.h"
#include "tests/contract/target.h"

namespace tollgate::test {
namespace {

using coding::Coding;
using coding::testing::Encode;

constexpr Coding kAll[] = {Coding::kGzip, Coding::kZstd, Coding::kBrotli};

class CodedBodiesTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_EQ(target().failure, "");
    if (target().cluster == nullptr) GTEST_SKIP() << "needs a cluster of its own";
  }
  Target& target() const { return TargetOf(GetParam()); }
  HttpResponse Ask(const EndpointForm& form, Coding coding, const std::string& bytes,
                   const std::string& key = "good") const {
    HeaderList headers = {{"Content-Type", "application/json"},
                          {"Content-Encoding", std::string(CodingName(coding))}};
    if (!key.empty()) {
      headers.emplace_back("Authorization", "Bearer " + target().facts["keys"][key].str());
    }
    return Http(target().port, "POST", form.path, headers, bytes);
  }
  static void ExpectBadRequest(const HttpResponse& answer, const std::string& text) {
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.header("x-should-retry"), "false");
    EXPECT_EQ(answer.json()["error"]["code"].str(), "bad_request");
    EXPECT_NE(answer.json()["error"]["message"].str().find(text), std::string::npos) << answer.body;
  }
};
INSTANTIATE_TEST_SUITE_P(Bodies, CodedBodiesTest, ::testing::Values("allinone", "tcp"),
                         [](const auto& info) { return info.param; });

TEST_P(CodedBodiesTest, AreAnsweredLikePlainOnes) {
  for (const EndpointForm& form : EndpointForms()) {
    for (const Coding coding : kAll) {
      SCOPED_TRACE(form.path + " " + std::string(CodingName(coding)));
      const HttpResponse small = Ask(form, coding, Encode(coding, form.Body({})));
      EXPECT_EQ(small.status, 200) << small.body;
      // Larger than what an event loop decodes by itself.
      const std::string more = ",\"metadata\":{\"a\":\"" + std::string(600'000, 'a') + "\"}";
      const HttpResponse large = Ask(form, coding, Encode(coding, form.Body({.more = more})));
      EXPECT_EQ(large.status, 200) << large.body;
    }
  }
}

TEST_P(CodedBodiesTest, WhatIsBrokenOrABombIsRefused) {
  static const std::map<Coding, std::string> bombs = [] {
    std::map<Coding, std::string> coded;
    for (const Coding coding : kAll) coded[coding] = Encode(coding, std::string(15 << 20, ' '));
    return coded;
  }();
  for (const EndpointForm& form : EndpointForms()) {
    for (const Coding coding : kAll) {
      SCOPED_TRACE(form.path + " " + std::string(CodingName(coding)));
      const std::string coded = Encode(coding, form.Body({}));
      ExpectBadRequest(Ask(form, coding, coded.substr(0, coded.size() - 3)), "Content-Encoding");
      ExpectBadRequest(Ask(form, coding, form.Body({})), "Content-Encoding");
      ExpectBadRequest(Ask(form, coding, bombs.at(coding)), "100 times");
      // Nothing is decoded for a caller without a key.
      EXPECT_EQ(Ask(form, coding, bombs.at(coding), "").status, 401);
    }
  }
}

// The limit of a plain body applies to the decoded body, also when few coded bytes arrive.
TEST_P(CodedBodiesTest, DecodedBodiesAreWithinTheLimit) {
  static const std::string coded = [] {
    std::string noise;
    for (uint64_t state = 3; noise.size() < (17u << 20); noise += "0123456789abcdef"[state >> 60]) {
      state = state * 6364136223846793005 + 1442695040888963407;
    }
    return Encode(Coding::kZstd, noise);
  }();
  for (const EndpointForm& form : EndpointForms()) {
    SCOPED_TRACE(form.path);
    const HttpResponse answer = Ask(form, Coding::kZstd, coded);
    ExpectBadRequest(answer, "too large");
    EXPECT_EQ(answer.json()["error"]["type"].str(),
              form.family == Family::kMessages ? "request_too_large" : "invalid_request_error");
  }
}

}  // namespace
}  // namespace tollgate::test
