#include "services/inference_router/engine/engine_request.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

TEST(EngineRequest, InsertsTheClientsMembers) {
  inference::v1::GenerateRequest request;
  request.set_members_json(R"("messages":[{"role":"user","content":"hi"}],"top_k":3)");
  request.set_max_tokens(7);
  EXPECT_EQ(
      BuildEngineBody(request, catalog::v1::ENGINE_KIND_VLLM, "a\"b"),
      R"({"model":"a\"b","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"max_tokens":7,"messages":[{"role":"user","content":"hi"}],"top_k":3})");
  request.clear_members_json();
  request.set_max_tokens(0);
  EXPECT_EQ(BuildEngineBody(request, catalog::v1::ENGINE_KIND_LLAMACPP, "m"),
            R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})");
}

}  // namespace
}  // namespace tollgate::inference_router
