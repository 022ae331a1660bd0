#include "services/inference_router/balancer/engine_load.h"

#include <gtest/gtest.h>

#include <string>

namespace tollgate::inference_router {
namespace {

using catalog::v1::EngineKind;

std::string Read(EngineKind kind, std::string_view text) {
  const auto load = ReadLoad(kind, text);
  if (!load) return "none";
  return std::to_string(load->running) + " " + std::to_string(load->queued) + " " +
         std::to_string(load->cache_use).substr(0, 5);
}

// Texts as sent by each kind of engine.
TEST(EngineLoad, ReadsTheGaugesOfEachKind) {
  EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_VLLM,
                 "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
                 "# TYPE vllm:num_requests_running gauge\n"
                 "vllm:num_requests_running{engine=\"0\",model_name=\"acme/large\"} 7.0\n"
                 "# TYPE vllm:num_requests_waiting gauge\n"
                 "vllm:num_requests_waiting{engine=\"0\",model_name=\"acme/large\"} 3.0\n"
                 "vllm:num_requests_waiting_by_reason{engine=\"0\",reason=\"capacity\"} 99.0\n"
                 "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"acme/large\"} 0.625\n"),
            "7 3 0.625");
  EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_VLLM,
                 "vllm:num_requests_running{model_name=\"m\"} 1.0\n"
                 "vllm:num_requests_waiting{model_name=\"m\"} 0.0\n"
                 "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.0625\n"),
            "1 0 0.062")
      << "the name of the cache's gauge until 2025";
  EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_SGLANG,
                 "sglang:num_running_reqs{model_name=\"m\",tp_rank=\"0\"} 2.0\n"
                 "sglang:num_queue_reqs{model_name=\"m\",tp_rank=\"0\"} 5.0\n"
                 "sglang:token_usage{model_name=\"m\",tp_rank=\"0\"} 0.28\n"),
            "2 5 0.280");
  EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_LLAMACPP,
                 "# TYPE llamacpp:requests_processing gauge\n"
                 "llamacpp:requests_processing 2\n"
                 "# TYPE llamacpp:requests_deferred gauge\n"
                 "llamacpp:requests_deferred 1\n"),
            "2 1 -1.00");
  EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_TGI,
                 "# TYPE tgi_queue_size gauge\ntgi_queue_size 4\n"
                 "# TYPE tgi_batch_current_size gauge\ntgi_batch_current_size 16\n"),
            "16 4 -1.00");
}

TEST(EngineLoad, AddsUpTheRanksOfAnEngineAndTakesTheFullestCache) {
  EXPECT_EQ(
      Read(catalog::v1::ENGINE_KIND_VLLM,
           "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 4\n"
           "vllm:num_requests_waiting{engine=\"0\"} 1\nvllm:num_requests_waiting{engine=\"1\"} 0\n"
           "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\nvllm:kv_cache_usage_perc{engine=\"1\"} "
           "0.75\n"),
      "7 1 0.750");
}

TEST(EngineLoad, ALabelMayHoldAnyCharacter) {
  EXPECT_EQ(
      Read(catalog::v1::ENGINE_KIND_VLLM,
           "vllm:num_requests_running{model_name=\"a} 9 \\\" vllm:num_requests_waiting 8\"} 1\n"),
      "1 -1 -1.00");
}

TEST(EngineLoad, WhatNoLoadCanBeIsNotBelieved) {
  for (const char* value : {"-1", "NaN", "+Inf", "1e300", "", "x", "{a=\"b} 1"}) {
    EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_TGI, "tgi_queue_size " + std::string(value) + "\n"),
              "none")
        << value;
  }
  EXPECT_EQ(
      Read(catalog::v1::ENGINE_KIND_SGLANG, "sglang:num_running_reqs 1\nsglang:token_usage 7.5\n"),
      "1 -1 -1.00");
}

TEST(EngineLoad, AnotherTextHasNone) {
  EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_VLLM, ""), "none");
  EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_VLLM, "<html>vllm:num_requests_running 1</html>"),
            "none");
  EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_VLLM, "sglang:num_running_reqs 1\n"), "none");
  EXPECT_EQ(Read(catalog::v1::ENGINE_KIND_OLLAMA, "vllm:num_requests_running 1\n"), "none");
}

TEST(EngineLoad, IsFreshUntilItsTime) {
  EXPECT_FALSE(EngineLoad{}.Fresh(1)) << "never read";
  EXPECT_TRUE(EngineLoad{.fresh_until_us = 2}.Fresh(1));
  EXPECT_FALSE(EngineLoad{.fresh_until_us = 2}.Fresh(2));
}

}  // namespace
}  // namespace tollgate::inference_router
