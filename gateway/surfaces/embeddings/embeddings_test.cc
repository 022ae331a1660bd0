// POST /v1/embeddings: request, exact answers, and vectors that lose no bit. spec: wire.md 4.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "common/base/base64.h"
#include "gateway/surfaces/embeddings/answer.h"
#include "gateway/surfaces/embeddings/embeddings_surface.h"
#include "gateway/surfaces/embeddings/request.h"

namespace tollgate::gateway {
namespace {

namespace pb = inference::v1;

CanonicalRequest Good(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  auto request = EmbeddingsSurface().ParseRequest(*document);
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

TEST(EmbeddingRequest, WhatTheEngineGets) {
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

TEST(EmbeddingRequest, WhatIsRefused) {
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

pb::Delta Vector(int32_t input, std::string json) {
  pb::Delta delta;
  delta.set_choice(input);
  delta.set_embedding_json(std::move(json));
  return delta;
}

std::string Answer(const std::string& format, const std::vector<pb::Delta>& deltas) {
  const CanonicalRequest request =
      Good(R"({"model":"ns/m","input":["a","b"],"encoding_format":")" + format + "\"}");
  const auto answer = EmbeddingsSurface().MakeFoldedAnswer(request, {});
  for (const pb::Delta& delta : deltas) answer->OnDelta(delta);
  pb::End end;
  end.mutable_usage()->set_prompt_tokens(7);
  return answer->Finish(end);
}

// 0.5 and -2 as little-endian floats.
constexpr char kBase64[] = "\"AAAAPwAAAMA=\"";

TEST(EmbeddingAnswer, FloatsInOrder) {
  EXPECT_EQ(Answer("float", {Vector(1, "[1.5]"), Vector(0, kBase64), Vector(0, "[9]"),
                             Vector(2, "[9]"), Vector(-1, "[9]")}),
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-2]},)"
            R"({"object":"embedding","index":1,"embedding":[1.5]}],"model":"ns/m",)"
            R"("usage":{"prompt_tokens":7,"total_tokens":7}})");
}

TEST(EmbeddingAnswer, Base64) {
  EXPECT_EQ(Answer("base64", {Vector(0, "[ 0.5, -2.0 ]"), Vector(1, kBase64)}),
            R"({"object":"list","data":[)"
            R"({"object":"embedding","index":0,"embedding":"AAAAPwAAAMA="},)"
            R"({"object":"embedding","index":1,"embedding":"AAAAPwAAAMA="}],"model":"ns/m",)"
            R"("usage":{"prompt_tokens":7,"total_tokens":7}})");
}

std::string Form(std::string_view json, VectorForm form) {
  std::string out;
  AppendVector(out, json, form);
  return out;
}

TEST(Vectors, EveryFloatSurvivesBothWays) {
  std::string bytes;
  // A walk through all exponents and many mantissas, both signs, denormals included.
  for (uint32_t bits = 1; bits < 0x7F800000U; bits += 100'003) {
    for (const uint32_t sign : {0U, 0x80000000U}) {
      const uint32_t value = bits | sign;
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  const std::string base64 = "\"" + Base64Encode(bytes) + "\"";
  const std::string numbers = Form(base64, VectorForm::kFloats);
  EXPECT_TRUE(json::Document::ParseView("[" + numbers.substr(1)).ok()) << "must be JSON";
  EXPECT_EQ(Form(numbers, VectorForm::kBase64), base64);
}

TEST(Vectors, ShortestDecimals) {
  const auto of = [](float value) {
    return Form("\"" + Base64Encode({reinterpret_cast<const char*>(&value), 4}) + "\"",
                VectorForm::kFloats);
  };
  EXPECT_EQ(of(0.1F), "[0.1]");
  EXPECT_EQ(of(-0.0F), "[-0]");
  EXPECT_EQ(of(1.0F / 3), "[0.33333334]");
  EXPECT_EQ(of(1e-7F), "[1e-07]");
}

TEST(Vectors, NumbersOfADoubleBecomeTheNearestFloat) {
  // As Python prints a float32: the digits of its double.
  EXPECT_EQ(Form("[0.30000001192092896]", VectorForm::kBase64), Form("[0.3]", VectorForm::kBase64));
  // Rounded once, not through a double: this is just above the middle of two floats.
  const auto first = [](const std::string& json) {
    const std::string text = Form(json, VectorForm::kBase64);
    float value = 0;
    std::memcpy(&value, Base64Decode(text.substr(1, text.size() - 2))->data(), 4);
    return value;
  };
  EXPECT_EQ(first("[1.000000059604644775390626]"), std::nextafter(1.0F, 2.0F));
  EXPECT_EQ(first("[1e-60]"), 0.0F);
  EXPECT_TRUE(std::signbit(first("[-1e-60]")));
  EXPECT_EQ(Form("[]", VectorForm::kBase64), "\"\"");
  EXPECT_EQ(Form("\"\"", VectorForm::kFloats), "[]");
}

}  // namespace
}  // namespace tollgate::gateway
