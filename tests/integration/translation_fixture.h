// The fixture of the tests of unusual requests: what the engine receives, and what is charged.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {

inline constexpr int64_t kUsd = 1'000'000'000;
inline constexpr char kChat[] = "/v1/chat/completions";
inline constexpr char kMessages[] = "/v1/messages";
inline constexpr char kResponses[] = "/v1/responses";
inline constexpr char kCompletions[] = "/v1/completions";
inline constexpr char kEmbeddings[] = "/v1/embeddings";

// A system with engines of each kind.
struct TranslationWorld {
  EngineSim engine;
  EngineSim mute;  // has no tokenizer
  std::unique_ptr<Cluster> cluster;
  std::string failure;

  TranslationWorld();
};
// One world of each kind, "allinone" and "tcp", for the whole binary.
TranslationWorld& TranslationWorldOf(const std::string& kind);

class TranslationTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_EQ(world().failure, "");
    world().engine.ForgetRequests();
    world().mute.ForgetRequests();
  }
  void TearDown() override {
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster().Logs().c_str());
  }
  TranslationWorld& world() const { return TranslationWorldOf(GetParam()); }
  Cluster& cluster() const { return *world().cluster; }
  HttpResponse Post(const std::string& path, const std::string& members,
                    const std::string& model = "sim/model") {
    return cluster().Post(key_, path, "{\"model\":\"" + model + "\"," + members + "}");
  }
  // The body that the engine received of a request that succeeds.
  std::string Sent(const std::string& path, const std::string& members,
                   const std::string& model = "sim/model") {
    const HttpResponse answer = Post(path, members, model);
    EXPECT_EQ(answer.status, 200) << answer.body << answer.error;
    const std::vector<SimRequest> requests = world().engine.requests();
    return requests.empty() ? "" : requests.back().body;
  }
  int64_t Tokenized() const { return world().engine.totals().tokenizer_requests; }
  int64_t Generated() const { return world().engine.totals().requests; }
  int64_t Spent() {
    EXPECT_TRUE(cluster().WaitIdle(key_.workspace_id));
    return kUsd - cluster().Balance(key_.workspace_id)->posted;
  }

  const ApiKey key_ = TranslationWorldOf(GetParam()).cluster->NewCustomer(kUsd);
};
// A JSON string of `count` words, each a token of the simulated engines.
std::string Words(int count);

}  // namespace tollgate::test
