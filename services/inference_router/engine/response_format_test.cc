#include "services/inference_router/engine/response_format.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

std::string ForTgi(const std::string& members) {
  return FitResponseFormat(catalog::v1::ENGINE_KIND_TGI, members).value_or("as it is");
}

TEST(ResponseFormat, TgiGetsTheSchemaAsAValue) {
  EXPECT_EQ(
      ForTgi(
          R"("messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"object","required":["x"]}}},"top_k":3)"),
      R"("messages":[],"response_format":{"type":"json_object","value":{"type":"object","required":["x"]}},"top_k":3)");
  EXPECT_EQ(ForTgi(R"("response_format":{"type":"json_object"})"),
            R"("response_format":{"type":"json_object","value":{"type":"object"}})");
  EXPECT_EQ(ForTgi(R"("response_format":{"type":"json_schema","json_schema":{"name":"a"}})"),
            R"("response_format":{"type":"json_object","value":{"type":"object"}})");
}

TEST(ResponseFormat, WhatIsInTheWordsOfTgiStays) {
  for (const char* members :
       {R"("response_format":{"type":"json_object","value":{"a":1}})",
        R"("response_format":{"type":"regex","value":"a+"})",
        R"("response_format":{"type":"structural_tag"})", R"("response_format":"json_object")",
        R"("messages":[])", "", R"("messages":[{"content":"response_format"}])"}) {
    EXPECT_EQ(ForTgi(members), "as it is") << members;
  }
}

TEST(ResponseFormat, OtherKindsReadThePublicForm) {
  for (const auto kind : {catalog::v1::ENGINE_KIND_VLLM, catalog::v1::ENGINE_KIND_SGLANG,
                          catalog::v1::ENGINE_KIND_LLAMACPP, catalog::v1::ENGINE_KIND_OLLAMA,
                          catalog::v1::ENGINE_KIND_OPENAI}) {
    EXPECT_FALSE(FitResponseFormat(kind, R"("response_format":{"type":"json_object"})"));
  }
}

}  // namespace
}  // namespace tollgate::inference_router
