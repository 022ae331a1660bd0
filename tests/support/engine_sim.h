// A SIMULATED inference engine for tests, the benchmark and the demonstration. It speaks vLLM's
// HTTP dialect and answers with made-up text: there is no model in it. README.md lists what can be
// scripted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tollgate::test {

// Whose tokenizer endpoints it has (docs/design/wire.md 10.3); everything else is vLLM's.
// kSglangOld takes no messages, kNone has no tokenizer.
enum class SimDialect { kVllm, kSglang, kSglangOld, kLlamaCpp, kTgi, kNone };

struct EngineSimOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free one
  std::vector<std::string> models = {"sim/model"};
  int64_t context_window = 131'072;
  // Output tokens of an answer whose length nobody sets.
  int64_t tokens = 32;
  int64_t reasoning_tokens = 0;
  // Name of the reasoning member: "reasoning" (vLLM since late 2025) or "reasoning_content".
  std::string reasoning_field = "reasoning";
  int64_t first_token_ms = 0;
  double token_ms = 0;  // between tokens; 0: as fast as the socket takes them
  uint64_t seed = 1;
  // When set, requests need "Authorization: Bearer <api_key>".
  std::string api_key;
  // Keep the received bodies (tests) or only the counts (benchmarks).
  bool keep_requests = true;
  // Old error form {"object":"error",…} instead of {"error":{…}}.
  bool flat_errors = false;
  // Usage as vLLM gives it with its details flag: reasoning and cached tokens.
  bool usage_details = false;
  // At most this many requests run at a time; more get 429. 0: no bound.
  int64_t max_running = 0;
  SimDialect dialect = SimDialect::kVllm;
};

// One request to a generating endpoint, as it stands now. Times are monotonic microseconds
// (SystemClock); 0: has not happened.
struct SimRequest {
  int64_t number = 0;  // from 1, in order of arrival
  std::string path;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string tag;                                           // x_sim.tag
  int status = 0;
  bool stream = false;
  bool running = false;
  bool finished = false;  // the whole answer was written
  bool aborted = false;   // the caller went away before that
  bool cut = false;       // a scripted fault ended it
  int64_t prompt_tokens = 0;
  // Output tokens, reasoning and tool calls included, that were handed to the connection.
  int64_t tokens_generated = 0;
  int64_t received_us = 0;
  int64_t first_token_us = 0;
  int64_t ended_us = 0;

  const std::string& header(const std::string& lower_name) const;
};

struct SimTotals {
  int64_t requests = 0;
  int64_t tokenizer_requests = 0;
  int64_t running = 0;
  int64_t finished = 0;
  int64_t aborted = 0;
  int64_t prompt_tokens = 0;
  int64_t tokens_generated = 0;
  int64_t connections = 0;  // open now
};

// Runs on a thread of its own. All functions are thread-safe.
class EngineSim {
 public:
  explicit EngineSim(EngineSimOptions options = {});
  ~EngineSim();  // stops
  EngineSim(const EngineSim&) = delete;
  EngineSim& operator=(const EngineSim&) = delete;

  // Binds and starts. False, with the reason in *error when given, if the port can not be had.
  bool Start(std::string* error = nullptr);
  // Closes everything. Start may follow: it takes the same port again.
  void Stop();

  int port() const;
  std::string base_url() const;  // http://127.0.0.1:4711

  std::vector<SimRequest> requests() const;
  SimTotals totals() const;
  int64_t running() const { return totals().running; }
  void ForgetRequests();
  // Waits until done() of some snapshot is true; false when the time is over.
  template <typename Done>
  bool WaitFor(Done done, int64_t timeout_ms = 5000) const {
    for (int64_t waited = 0; !done(*this); ++waited) {
      if (waited >= timeout_ms) return false;
      SleepMs(1);
    }
    return true;
  }

  // The script of requests that bring none ("x_sim" of the body wins member by member): JSON text.
  void SetDefaultScript(const std::string& json_object);
  // /health answers 200 or 503.
  void SetHealthy(bool healthy);
  // While paused nothing is read, accepted or answered, as if the process were stopped.
  void SetPaused(bool paused);
  // Refuses new connections, and closes the open ones; listens again on the same port.
  void SetListening(bool listening);

 private:
  static void SleepMs(int64_t ms);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tollgate::test
