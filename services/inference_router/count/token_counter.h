// Counts the tokens of prompts with the engines' tokenizers. Lives on one loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "common/base/clock.h"
#include "common/http/client.h"
#include "common/runtime/notify.h"
#include "common/runtime/thread_pool.h"
#include "services/inference_router/balancer/routing_table.h"
#include "services/inference_router/count/tokenizer_call.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

struct CountTimeLimits {
  int64_t wait_ms = 3'000;   // for a place, and for the head or more of an engine's response
  int64_t call_ms = 4'000;   // one call
  int64_t count_ms = 8'000;  // all calls for one prompt
};

class TokenCounter {
 public:
  // The arguments must outlive the counter, and the counter its calls. decoders: used for texts
  // above kMaxBytesDecodedOnLoop. on_implausible: called for each count that is impossible for a
  // prompt of that size; may be empty.
  TokenCounter(Loop& loop, http::Client& http, const Clock& clock,
               std::shared_ptr<ThreadPool> decoders, std::function<void()> on_implausible = {},
               CountTimeLimits time_limits = {})
      : loop_(loop),
        http_(http),
        clock_(clock),
        decoders_(std::move(decoders)),
        on_implausible_(std::move(on_implausible)),
        time_limits_(time_limits),
        slot_free_(loop) {}

  // Counts with an available engine of the model, and with a second one if the first fails
  // (unreachable, slow, an error, or an impossible count). `counted` is false if no engine has a
  // tokenizer, none can be reached, the prompt is refused, or the call waited too long. table may
  // be null. A count is not a running request of the engine, because tokenizers answer even when
  // the engine is saturated. Counting is free of charge, so the number of concurrent calls is
  // limited.
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
    int64_t longest = 0;  // tokens of the longest prompt
    std::string body;
  };
  // One call of Count. Shared with the functions that decode for it.
  struct Job;
  using JobPointer = std::shared_ptr<const Job>;
  Task<inference::v1::CountTokensResponse> CountJob(std::shared_ptr<const RoutingTable> table,
                                                    std::shared_ptr<Job> job);
  Task<inference::v1::CountTokensResponse> CountOnEngines(const Route& route, JobPointer job);
  // An available engine with a tokenizer, other than `excluded`; null if there is none.
  EnginePointer Select(const Route& route, const Job& job, const EngineState* excluded);
  Task<EngineCount> CountOn(JobPointer job, EngineState& engine);
  Task<EngineCount> CountChat(JobPointer job, EngineState& engine);
  Task<EngineCount> CountPrompts(const Job& job, EngineState& engine);
  Task<EngineCount> CountPrompt(const Job& job, EngineState& engine,
                                const std::string& prompt_json);
  Task<EngineCount> Post(const Job& job, EngineState& engine, TokenizerCall call);
  // Reads the count from an engine's response.
  Task<EngineCount> Read(catalog::v1::EngineKind kind, std::string body);
  // Runs the function here, or on a decoder thread if it works on many bytes; it must then own
  // them. Empty if too many texts wait for the decoders.
  template <typename Function>
  Task<std::optional<std::invoke_result_t<Function&>>> Decode(size_t bytes, Function function);
  bool LacksTokenizer(const EngineState& engine, const std::string& engine_model) const;
  void RememberNoTokenizer(const EngineState& engine, const std::string& engine_model);

  Loop& loop_;
  http::Client& http_;
  const Clock& clock_;
  const std::shared_ptr<ThreadPool> decoders_;
  const std::function<void()> on_implausible_;
  const CountTimeLimits time_limits_;
  Notify slot_free_;
  int running_ = 0;
  uint64_t rotation_ = 0;
  // Time (monotonic µs) until which an engine is assumed to have no tokenizer for a model.
  std::unordered_map<std::string, int64_t> no_tokenizer_until_us_;
};

}  // namespace tollgate::inference_router
