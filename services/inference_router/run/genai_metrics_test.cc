#include "services/inference_router/run/genai_metrics.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

GenAiAnswer Chat(std::string_view model) {
  return {.kind = inference::v1::REQUEST_KIND_CHAT,
          .engine = catalog::v1::ENGINE_KIND_VLLM,
          .model = model,
          .took_us = 3'000'000,
          .first_token_us = 1'000'000,
          .prompt_tokens = 7,
          .completion_tokens = 5};
}

constexpr char kLabels[] =
    R"({gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model=")";

TEST(GenAiMetrics, TheNamesAndLabelsAreThoseOfTheSemanticConventions) {
  GenAiMetrics metrics;
  metrics.Observe(Chat("a/named"));
  const std::string text = metrics::Render();
  const std::string labels = std::string(kLabels) + "a/named\"}";
  EXPECT_NE(text.find("gen_ai_server_time_to_first_token_seconds_sum" + labels + " 1\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",)"
                      R"(gen_ai_provider_name="vllm",gen_ai_request_model="a/named",)"
                      R"(gen_ai_token_type="input"} 7)"),
            std::string::npos);
  EXPECT_NE(text.find(R"(gen_ai_server_request_duration_seconds_sum{error_type="",)"),
            std::string::npos);
}

TEST(GenAiMetrics, TimePerTokenLeavesOutTheFirstToken) {
  GenAiMetrics metrics;
  metrics.Observe(Chat("a/paced"));
  EXPECT_NE(metrics::Render().find("gen_ai_server_time_per_output_token_seconds_sum" +
                                   std::string(kLabels) + "a/paced\"} 0.5\n"),
            std::string::npos);
}

TEST(GenAiMetrics, AModelThatIsNotInTheCatalogIsNoLabel) {
  GenAiMetrics metrics;
  metrics.Observe(Chat(""));
  EXPECT_NE(metrics::Render().find(R"(gen_ai_request_model="unlisted")"), std::string::npos);
}

TEST(GenAiMetrics, AFailureHasItsErrorAndNoTokens) {
  GenAiMetrics metrics;
  metrics.Observe({.kind = inference::v1::REQUEST_KIND_COMPLETION,
                   .engine = catalog::v1::ENGINE_KIND_VLLM,
                   .model = "a/failing",
                   .error = "bad_gateway",
                   .took_us = 20'000});
  const std::string text = metrics::Render();
  EXPECT_NE(text.find(R"(_duration_seconds_count{error_type="bad_gateway",gen_ai_operation_name=)"
                      R"("text_completion",gen_ai_provider_name="vllm",)"
                      R"(gen_ai_request_model="a/failing"} 1)"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find(R"(a/failing",gen_ai_token_type="input"} 1)"), std::string::npos);
}

}  // namespace
}  // namespace tollgate::inference_router
