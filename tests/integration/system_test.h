// The fixture of all integration tests: the same cases against the all-in-one process (with direct
// calls, and over in-process gRPC, ADR 0006) and against a cluster over TCP with one process per
// service; cases of keys, limits and money also against such a cluster on PostgreSQL. Two simulated
// engines serve "sim/model" and "outside/model", which no catalog lists.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {

// Catalog prices in USD per million tokens; chosen so that exact costs are not whole nano-USD.
inline constexpr char kInputPrice[] = "0.150101";
inline constexpr char kOutputPrice[] = "0.600307";
inline constexpr int64_t kInputPico = 150'101;
inline constexpr int64_t kOutputPico = 600'307;
inline constexpr int64_t kUsd = 1'000'000'000;

// The expected charge: one floor per request (decision 10).
inline int64_t Charge(int64_t prompt_tokens, int64_t completion_tokens) {
  return (prompt_tokens * kInputPico + completion_tokens * kOutputPico) / 1000;
}

// {"model":…,"messages":[{"role":"user","content":"hello there"}]<more>}
std::string ChatBody(const std::string& more = "", const std::string& model = "sim/model");
inline constexpr char kChat[] = "/v1/chat/completions";

inline const auto kSystems = ::testing::Values("allinone", "allinone_grpc", "tcp");
inline const auto kSystemsAndStores =
    ::testing::Values("allinone", "allinone_grpc", "tcp", "tcp_postgres");

class SystemTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void TearDown() override;

  Cluster& cluster() const;
  EngineSim& engine(int index) const;
  std::vector<SimRequest> EngineRequests(const std::string& tag) const;  // of both engines
  int64_t EnginesRunning() const;

  // Creates a customer with this much credit.
  ApiKey Customer(int64_t nano_usd = kUsd, const KeyOptions& options = {}) {
    return cluster().NewCustomer(nano_usd, options);
  }
  HttpResponse Chat(const ApiKey& key, const std::string& more = "",
                    const std::string& model = "sim/model") {
    return cluster().Post(key, kChat, ChatBody(more, model));
  }
  SseStream ChatStream(const ApiKey& key, const std::string& more = "") {
    return cluster().Stream(key, ChatBody(",\"stream\":true" + more));
  }
  // Credit spent so far, after waiting until nothing is held.
  int64_t SpentOf(const ApiKey& key, int64_t credit = kUsd);
  // A tag for x_sim that no other test uses.
  std::string NewTag();
};

// Compares the OpenAI-style envelope exactly.
void ExpectError(const HttpResponse& answer, int status, const std::string& code,
                 const std::string& type, const std::string& param = "");

}  // namespace tollgate::test
