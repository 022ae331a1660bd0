// A SIMULATED inference engine for tests, the benchmark and the demonstration. It implements vLLM's
// HTTP dialect and answers with generated text, without a model. README.md lists the scripts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tollgate::test {

// The engine whose tokenizer endpoints are simulated (docs/design/wire.md 10.3); everything else is
// vLLM's. kSglangOld accepts no messages, kNone has no tokenizer.
enum class SimDialect { kVllm, kSglang, kSglangOld, kLlamaCpp, kTgi, kNone };

struct EngineSimOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free one
  std::vector<std::string> models = {"sim/model"};
  int64_t context_window = 131'072;
  // Output tokens when neither request nor script sets a length.
  int64_t tokens = 32;
  int64_t reasoning_tokens = 0;
  // Name of the reasoning member: "reasoning" (vLLM since late 2025) or "reasoning_content".
  std::string reasoning_field = "reasoning";
  int64_t first_token_ms = 0;
  double token_ms = 0;  // between tokens; 0: as fast as the socket allows
  uint64_t seed = 1;
  // When set, requests need "Authorization: Bearer <api_key>".
  std::string api_key;
  // Keeps the received bodies (tests) or only the counts (benchmarks).
  bool keep_requests = true;
  // Uses the old error form {"object":"error",…} instead of {"error":{…}}.
  bool flat_errors = false;
  // Sends usage like vLLM with its details flag: reasoning and cached tokens.
  bool usage_details = false;
  // At most this many requests run at a time; more get 429. 0: no limit.
  int64_t max_running = 0;
  SimDialect dialect = SimDialect::kVllm;
  // Name in the marks of answers and in the journal, to distinguish engines.
  std::string name = "sim";
  // File to which a line of JSON is appended for each request before its answer, so that the line
  // survives a kill. Empty: none.
  std::string journal;
};

// A snapshot of one request to a generating endpoint. Times are monotonic microseconds
// (SystemClock); 0: not happened yet.
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
  bool aborted = false;   // the client disconnected before that
  bool cut = false;       // a scripted fault ended it
  int64_t prompt_tokens = 0;
  // Output tokens written to the connection, reasoning and tool calls included.
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

// Runs on its own thread. All functions are thread-safe.
class EngineSim {
 public:
  explicit EngineSim(EngineSimOptions options = {});
  ~EngineSim();  // stops
  EngineSim(const EngineSim&) = delete;
  EngineSim& operator=(const EngineSim&) = delete;

  // Binds and starts. False, with the reason in *error when given, if the port is not available.
  bool Start(std::string* error = nullptr);
  // Closes all sockets. Start may follow, on the same port.
  void Stop();

  int port() const;
  std::string base_url() const;  // http://127.0.0.1:4711

  std::vector<SimRequest> requests() const;
  SimTotals totals() const;
  int64_t running() const { return totals().running; }
  void ForgetRequests();
  // Waits until done() of a snapshot is true; false on timeout.
  template <typename Done>
  bool WaitFor(Done done, int64_t timeout_ms = 60'000) const {
    for (int64_t waited = 0; !done(*this); ++waited) {
      if (waited >= timeout_ms) return false;
      SleepMs(1);
    }
    return true;
  }

  // The default script as JSON text ("x_sim" of a body overrides it member by member).
  void SetDefaultScript(const std::string& json_object);
  // /health returns 200 or 503.
  void SetHealthy(bool healthy);
  // While paused it does not accept, read or write, as if the process were stopped.
  void SetPaused(bool paused);
  // While down it refuses new connections and closes open ones; up, it listens on the same port.
  void SetListening(bool listening);

 private:
  static void SleepMs(int64_t ms);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tollgate::test
