// See docs/design/wire.md 4.
#include "gateway/surfaces/embeddings/body_encoder.h"

#include <gtest/gtest.h>

#include <vector>

#include "gateway/surfaces/embeddings/embeddings_surface.h"

namespace tollgate::gateway {
namespace {

namespace pb = inference::v1;

pb::Delta Vector(int32_t input, std::string json) {
  pb::Delta delta;
  delta.set_choice(input);
  delta.set_embedding_json(std::move(json));
  return delta;
}

std::string Encode(const std::string& format, const std::vector<pb::Delta>& deltas) {
  const std::string body =
      R"({"model":"ns/m","input":["a","b"],"encoding_format":")" + format + "\"}";
  const auto document = json::Document::ParseView(body);
  const auto request = EmbeddingsSurface().ParseRequest(*document);
  EXPECT_TRUE(request.ok()) << body;
  const auto encoder = EmbeddingsSurface().MakeBodyEncoder(*request, {});
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta);
  pb::End end;
  end.mutable_usage()->set_prompt_tokens(7);
  return encoder->Finish(end);
}

// 0.5 and -2 as little-endian floats.
constexpr char kBase64[] = "\"AAAAPwAAAMA=\"";

TEST(EmbeddingBody, FloatsInInputOrder) {
  EXPECT_EQ(Encode("float", {Vector(1, "[1.5]"), Vector(0, kBase64), Vector(0, "[9]"),
                             Vector(2, "[9]"), Vector(-1, "[9]")}),
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-2]},)"
            R"({"object":"embedding","index":1,"embedding":[1.5]}],"model":"ns/m",)"
            R"("usage":{"prompt_tokens":7,"total_tokens":7}})");
}

TEST(EmbeddingBody, Base64) {
  EXPECT_EQ(Encode("base64", {Vector(0, "[ 0.5, -2.0 ]"), Vector(1, kBase64)}),
            R"({"object":"list","data":[)"
            R"({"object":"embedding","index":0,"embedding":"AAAAPwAAAMA="},)"
            R"({"object":"embedding","index":1,"embedding":"AAAAPwAAAMA="}],"model":"ns/m",)"
            R"("usage":{"prompt_tokens":7,"total_tokens":7}})");
}

}  // namespace
}  // namespace tollgate::gateway
