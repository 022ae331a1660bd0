// Counts the tokens of prompts with the engines' tokenizers. Lives on one loop.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/http/client.h"
#include "common/runtime/notify.h"
#include "services/inference_router/balancer/routing_table.h"
#include "services/inference_router/count/tokenizer_call.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

class TokenCounter {
 public:
  // The arguments outlive the counter, and the counter outlives its calls.
  TokenCounter(Loop& loop, http::Client& http, const Clock& clock)
      : http_(http), clock_(clock), slot_free_(loop) {}

  // Counts with an available engine of the model, and with a second one if that fails (unreachable,
  // slow, or an error). `counted` is false if no engine has a tokenizer, none can be reached, the
  // prompt is refused, or the call waited too long. table may be null. Does not count as a running
  // request of the engine: tokenizers also answer when the engine is saturated. Since counting is
  // not charged, the number of concurrent calls is limited.
  Task<inference::v1::CountTokensResponse> Count(std::shared_ptr<const RoutingTable> table,
                                                 inference::v1::CountTokensRequest request);

 private:
  struct EngineCount {
    enum Kind {
      kCounted,
      kNoTokenizer,  // the engine has no such endpoint
      kRefused,      // another engine would refuse the prompt, too
      kFailed,       // another engine may succeed
    } kind = kFailed;
    int64_t tokens = 0;
    std::string body;
  };
  struct Job;
  Task<inference::v1::CountTokensResponse> CountOnEngines(const Route& route, const Job& job);
  // An available engine with a tokenizer, other than `excluded`; null if there is none.
  EnginePointer Select(const Route& route, const Job& job, const EngineState* excluded);
  Task<EngineCount> CountOn(const Job& job, EngineState& engine);
  Task<EngineCount> CountChat(const Job& job, EngineState& engine);
  Task<EngineCount> CountPrompts(const Job& job, EngineState& engine);
  Task<EngineCount> CountPrompt(const Job& job, EngineState& engine,
                                const std::string& prompt_json);
  Task<EngineCount> Post(const Job& job, EngineState& engine, TokenizerCall call);
  bool LacksTokenizer(const EngineState& engine, const std::string& engine_model) const;
  void RememberNoTokenizer(const EngineState& engine, const std::string& engine_model);

  http::Client& http_;
  const Clock& clock_;
  Notify slot_free_;
  int running_ = 0;
  uint64_t rotation_ = 0;
  // Until when (monotonic µs) an engine is assumed to have no tokenizer for a model.
  std::unordered_map<std::string, int64_t> no_tokenizer_until_us_;
};

}  // namespace tollgate::inference_router
