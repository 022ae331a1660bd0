// Embeddings through the whole product: both encodings are exact, whichever the engine sends, and
// only the input is charged. See docs/design/wire.md 4, decisions 8 to 10.
#include <cstring>

#include "tests/integration/system_test.h"
#include "tests/support/sim_completions.h"
#include "tests/support/sim_embeddings.h"

namespace tollgate::test {
namespace {

class EmbeddingsTest : public SystemTest {
 protected:
  HttpResponse Embed(const ApiKey& key, const std::string& input, const std::string& more = "",
                     const std::string& model = "sim/embed") {
    return cluster().Post(key, "/v1/embeddings",
                          "{\"model\":\"" + model + "\",\"input\":" + input + more + "}");
  }
};
INSTANTIATE_TEST_SUITE_P(Systems, EmbeddingsTest, kSystems,
                         [](const auto& info) { return info.param; });

constexpr char kBase64[] = R"(,"encoding_format":"base64")";

// Independent of the product's decoder.
std::vector<float> DecodeBase64(const std::string& text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const uint32_t value = c >= 'A' && c <= 'Z'   ? c - 'A'
                           : c >= 'a' && c <= 'z' ? c - 'a' + 26
                           : c >= '0' && c <= '9' ? c - '0' + 52
                           : c == '+'             ? 62
                                                  : 63;
    bits = bits << 6 | value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xFF));
  }
  std::vector<float> vector(bytes.size() / sizeof(float));
  std::memcpy(vector.data(), bytes.data(), vector.size() * sizeof(float));
  return vector;
}

std::vector<float> VectorOf(const Json& embedding) {
  if (embedding.is_string()) return DecodeBase64(embedding.str());
  std::vector<float> vector;
  for (const Json& number : embedding.elements()) {
    vector.push_back(std::strtof(number.number_text().c_str(), nullptr));
  }
  return vector;
}

TEST_P(EmbeddingsTest, TheResponseHasThePublishedShape) {
  const HttpResponse answer = Embed(Customer(), "\"hello there\"");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json body = answer.json();
  EXPECT_EQ(body["object"].str(), "list");
  EXPECT_EQ(body["model"].str(), "sim/embed");
  ASSERT_EQ(body["data"].size(), 1u);
  EXPECT_EQ(body["data"][0]["object"].str(), "embedding");
  EXPECT_EQ(body["data"][0]["index"].integer(-1), 0);
  EXPECT_TRUE(body["data"][0]["embedding"].is_array());
  EXPECT_EQ(body["usage"].Dump(), R"({"prompt_tokens":4,"total_tokens":4})");
  EXPECT_EQ(body.size(), 4u) << "no engine extras: " << answer.body.substr(0, 200);
}

TEST_P(EmbeddingsTest, VectorsAreExactInEveryEncodingOfTheEngine) {
  const ApiKey key = Customer();
  const std::string inputs[] = {"\"hello\"", R"(["one","two words","Gr\u00fc\u00dfe"])", "[5,6,7]",
                                "[[1,2],[3]]"};
  for (const std::string& input : inputs) {
    const std::vector<Json> each = InputsOf(*Json::Parse(input));
    for (const char* asked : {"", kBase64, R"(,"encoding_format":"float")"}) {
      for (const char* sent : {"", R"("embedding_format":"float")",
                               R"("embedding_format":"base64","embedding_order":"reversed")"}) {
        const HttpResponse answer =
            Embed(key, input, asked + std::string(",\"x_sim\":{") + sent + "}");
        ASSERT_EQ(answer.status, 200) << answer.body;
        const Json data = answer.json()["data"];
        ASSERT_EQ(data.size(), each.size());
        for (size_t i = 0; i < each.size(); ++i) {
          EXPECT_EQ(data[i]["index"].integer(-1), static_cast<int64_t>(i));
          EXPECT_EQ(data[i]["embedding"].is_string(), asked == std::string(kBase64));
          EXPECT_EQ(VectorOf(data[i]["embedding"]), EmbeddingOf(each[i], kEmbeddingDimensions))
              << input << asked << sent;
        }
      }
    }
  }
}

TEST_P(EmbeddingsTest, TheEngineGetsBase64AndTheForwardedMembers) {
  const std::string tag = NewTag();
  const HttpResponse answer = Embed(
      Customer(), R"(["a","b"])",
      R"(,"dimensions":8,"user":"u","stream":true,"encoding_format":"float","x_sim":{"tag":")" +
          tag + "\"}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["data"][1]["embedding"].size(), 8u);
  const auto requests = EngineRequests(tag);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].path, "/v1/embeddings");
  const Json sent = Json::Parse(requests[0].body).value_or(Json());
  EXPECT_EQ(sent["cache_salt"].str().size(), 64u);
  EXPECT_EQ(sent.Dump(),
            R"({"model":"sim/model","encoding_format":"base64","input":["a","b"],"dimensions":8,)"
            R"("x_sim":{"tag":")" +
                tag + R"("},"cache_salt":")" + sent["cache_salt"].str() + "\"}");
}

TEST_P(EmbeddingsTest, OnlyTheInputIsCharged) {
  const ApiKey key = Customer();
  const Json usage = Embed(key, R"(["hello there","general kenobi"])").json()["usage"];
  EXPECT_EQ(usage["prompt_tokens"].integer(), 8);
  EXPECT_EQ(SpentOf(key), Charge(8, 0));
  Embed(key, "[[1,2,3],[4]]");
  EXPECT_EQ(SpentOf(key), Charge(8, 0) + Charge(4, 0));
}

TEST_P(EmbeddingsTest, CreditForTheInputSuffices) {
  // 36 bytes of text and at most 16 tokens around it: no credit is left for an output token.
  const int64_t bound = 36 + 16;
  const int64_t credit = (bound * kInputPico + 999) / 1000;
  const ApiKey key = Customer(credit);
  EXPECT_EQ(Embed(key, "\"" + std::string(36, 'a') + "\"").status, 200);
  EXPECT_EQ(SpentOf(key, credit), Charge(5, 0));
  ExpectError(Embed(Customer(credit - 1), "\"" + std::string(36, 'a') + "\""), 402,
              "insufficient_credits", "permission_error");
}

TEST_P(EmbeddingsTest, ImplausibleUsageIsNotCharged) {  // decision 9
  // The gateway's own count: exact for token ids, an estimate for text.
  const ApiKey ids = Customer();
  EXPECT_EQ(Embed(ids, "[1,2,3,4,5]", R"(,"x_sim":{"usage":"none"})").json()["usage"].Dump(),
            R"({"prompt_tokens":5,"total_tokens":5})");
  EXPECT_EQ(SpentOf(ids), Charge(5, 0));
  EXPECT_EQ(Embed(ids, "[1,2,3,4,5]", R"(,"x_sim":{"usage":"absurd"})").json()["usage"].Dump(),
            R"({"prompt_tokens":5,"total_tokens":5})");
  EXPECT_EQ(SpentOf(ids), 2 * Charge(5, 0));
  const ApiKey text = Customer();
  EXPECT_EQ(Embed(text, "\"12345678\"", R"(,"x_sim":{"usage":"negative"})")
                .json()["usage"]["prompt_tokens"]
                .integer(),
            8 / 4 + 4);
}

TEST_P(EmbeddingsTest, OnlyEmbeddingAndDualModelsAreAccepted) {
  const ApiKey key = Customer();
  for (const char* model : {"sim/model", "sim/text", "sim/vision"}) {
    ExpectError(Embed(key, "\"x\"", "", model), 400, "bad_request", "invalid_request_error",
                "model");
  }
  EXPECT_EQ(Embed(key, "\"x\"", "", "sim/dual").status, 200);
  ExpectError(Embed(key, "\"x\"", "", "outside/model"), 404, "model_unavailable",
              "not_found_error");
}

TEST_P(EmbeddingsTest, BadInputsAreRefused) {
  const ApiKey key = Customer();
  for (const char* input :
       {"null", "\"\"", "[]", "[\"\"]", "[[]]", "5", "{}", "[1.5]", "[-1]", "[\"a\",1]"}) {
    ExpectError(Embed(key, input), 400, "bad_request", "invalid_request_error", "input");
  }
  ExpectError(Embed(key, "\"x\"", R"(,"encoding_format":"hex")"), 400, "bad_request",
              "invalid_request_error", "encoding_format");
  ExpectError(Embed(key, "\"x\"", R"(,"dimensions":0)"), 400, "bad_request",
              "invalid_request_error", "dimensions");
  EXPECT_EQ(SpentOf(key), 0);
}

TEST_P(EmbeddingsTest, EngineFailuresCostNothing) {
  const ApiKey key = Customer();
  const auto failing = [&](const std::string& script) {
    return Embed(key, R"(["a","b"])", ",\"x_sim\":{" + script + "}");
  };
  ExpectError(failing(R"("status":503)"), 503, "service_unavailable", "service_unavailable");
  ExpectError(failing(R"("status":400,"error_body":"secret text")"), 400, "bad_request",
              "invalid_request_error");
  for (const char* broken : {R"("embedding_missing":1)", R"("cut_after_tokens":0)"}) {
    const HttpResponse answer = failing(broken);
    ExpectError(answer, 502, "server_error", "server_error");
  }
  const HttpResponse too_long = failing(
      R"("status":500,"error_body":{"error":{"message":"This model's maximum context length is 512 tokens. However, your request has 600 input tokens.","code":500}})");
  ExpectError(too_long, 400, "context_length_exceeded", "invalid_request_error", "input");
  EXPECT_NE(too_long.body.find("maximum context length is 512 tokens"), std::string::npos);
  EXPECT_EQ(SpentOf(key), 0);
}

TEST_P(EmbeddingsTest, ALargeBatchIsComplete) {
  std::string inputs = "[";
  for (int i = 0; i < 2048; ++i) inputs += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\"";
  inputs += "]";
  const ApiKey key = Customer();
  const HttpResponse answer = Embed(key, inputs, std::string(kBase64) + ",\"dimensions\":256");
  ASSERT_EQ(answer.status, 200) << answer.body.substr(0, 500);
  const Json data = answer.json()["data"];
  ASSERT_EQ(data.size(), 2048u);
  for (int i : {0, 1, 1000, 2047}) {
    EXPECT_EQ(VectorOf(data[i]["embedding"]), EmbeddingOf(Json(std::to_string(i)), 256));
  }
  EXPECT_EQ(SpentOf(key), Charge(2048 * 3, 0));
  ExpectError(Embed(key, "[\"x\"," + inputs.substr(1)), 400, "bad_request", "invalid_request_error",
              "input");
}

}  // namespace
}  // namespace tollgate::test
