// Asks engines how many tokens a prompt has. Lives on one loop.
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
  // All must outlive it, and it must outlive its counts.
  TokenCounter(Loop& loop, http::Client& http, const Clock& clock)
      : http_(http), clock_(clock), free_(loop) {}

  // By an available engine of the model, and by one other if that fails: an engine that can not be
  // reached, is slow or breaks. `counted` is false when none has a tokenizer, none can be reached,
  // or the prompt is refused there. table may be null. Takes no place at the engine: a tokenizer
  // answers also where no request fits in any more. Since counting is free for callers, only some
  // run at a time; who has waited for too long is not counted.
  Task<inference::v1::CountTokensResponse> Count(std::shared_ptr<const RoutingTable> table,
                                                 inference::v1::CountTokensRequest request);

 private:
  struct Told {
    enum Kind {
      kCounted,
      kNoTokenizer,  // there is no such endpoint
      kRefused,      // another engine would say the same
      kFailed,       // another engine may do better
    } kind = kFailed;
    int64_t tokens = 0;
    std::string body;
  };
  struct Job;
  Task<inference::v1::CountTokensResponse> CountAtEngines(const Route& route, const Job& job);
  EnginePointer Choose(const Route& route, const Job& job, const EngineState* but);
  Task<Told> Ask(const Job& job, EngineState& engine);
  Task<Told> AskChat(const Job& job, EngineState& engine);
  Task<Told> AskPrompts(const Job& job, EngineState& engine);
  Task<Told> AskPrompt(const Job& job, EngineState& engine, const std::string& prompt_json);
  Task<Told> Post(const Job& job, EngineState& engine, TokenizerCall call);
  bool KnownWithout(const EngineState& engine, const std::string& engine_model) const;
  void Remember(const EngineState& engine, const std::string& engine_model);

  http::Client& http_;
  const Clock& clock_;
  Notify free_;
  int running_ = 0;
  uint64_t turn_ = 0;
  // Until when (monotonic µs) an engine is taken to have no tokenizer for a model.
  std::unordered_map<std::string, int64_t> without_until_us_;
};

}  // namespace tollgate::inference_router
