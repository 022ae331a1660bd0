// See docs/design/wire.md 4.
#include "gateway/surfaces/embeddings/request.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

namespace pb = inference::v1;

CanonicalRequest Good(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  auto request = ParseEmbeddingRequest(*document);
  EXPECT_TRUE(request.ok()) << body << (request.ok() ? "" : request.error().ToString());
  return request.ok() ? std::move(*request) : CanonicalRequest();
}

std::string Refused(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  const auto request = ParseEmbeddingRequest(*document);
  if (request.ok()) return "accepted";
  EXPECT_EQ(request.error().id, ErrorId::kBadRequest);
  return request.error().param;
}

TEST(EmbeddingRequest, MembersForTheEngine) {
  const CanonicalRequest request =
      Good(R"({"model":"ns/m","input":["a", "bc"],"dimensions":64.0,"encoding_format":"base64",)"
           R"("user":"u","stream":true,"messages":[1],"embed_dtype":"float16","endianness":"big",)"
           R"("truncate_prompt_tokens":5,"max_tokens":0})");
  EXPECT_EQ(request.kind, pb::REQUEST_KIND_EMBEDDING);
  EXPECT_EQ(request.choices, 2);
  EXPECT_EQ(request.prompt.prompts, 2);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.max_tokens.has_value());
  EXPECT_EQ(request.members_json,
            R"("input":["a", "bc"],"dimensions":64,"truncate_prompt_tokens":5)");
}

TEST(EmbeddingRequest, InvalidRequestsAreRefused) {
  const auto with = [](const std::string& more, const std::string& input = "\"x\"") {
    return R"({"model":"m","input":)" + input + more + "}";
  };
  EXPECT_EQ(Refused("5"), "");
  EXPECT_EQ(Refused(R"({"input":"x"})"), "model");
  EXPECT_EQ(Refused(R"({"model":"m"})"), "input");
  for (const char* input : {"null", "\"\"", "[]", "5", "{}", R"([""])", "[[]]", "[-1]"}) {
    EXPECT_EQ(Refused(with("", input)), "input") << input;
  }
  std::string most = "\"a\"";
  for (int i = 1; i < 2048; ++i) most += ",\"a\"";
  EXPECT_EQ(Refused(with("", "[" + most + "]")), "accepted");
  EXPECT_EQ(Refused(with("", "[\"a\"," + most + "]")), "input");
  for (const char* format : {"\"hex\"", "5", "[]"}) {
    EXPECT_EQ(Refused(with(",\"encoding_format\":" + std::string(format))), "encoding_format");
  }
  for (const char* dimensions : {"0", "-1", "1.5", "\"8\""}) {
    EXPECT_EQ(Refused(with(",\"dimensions\":" + std::string(dimensions))), "dimensions");
  }
  EXPECT_EQ(Refused(with(R"(,"encoding_format":null,"dimensions":null,"user":null)")), "accepted");
}

}  // namespace
}  // namespace tollgate::gateway
