// From a request's JSON to the simulated engine's response plan. Pure: no sockets, no clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/engine_sim.h"
#include "tests/support/json.h"

namespace tollgate::test {

// A response other than 200.
struct SimError {
  int status = 400;
  std::string type;  // BadRequestError, NotFoundError, …
  std::string message;
  std::string param;
};

// A run of tokens of one kind within a choice.
struct SimSegment {
  enum class Kind { kReasoning, kText, kTool };
  Kind kind = Kind::kText;
  // Generated from the seed when `pieces` is empty.
  uint64_t seed = 0;
  int64_t count = 0;
  std::vector<std::string> pieces;
  // Tool calls: the first token opens the call, the others are its arguments.
  int tool_index = 0;
  std::string tool_id;
  std::string tool_name;
};

struct SimChoice {
  std::vector<SimSegment> segments;
  std::string echo;  // the prompt, sent before the first token
  int64_t prompt_tokens = 0;
  std::string finish_reason;
};

// The script of one request: member "x_sim" of its body over the simulator's default script.
struct SimScript {
  int64_t delay_ms = 0;
  double token_ms = 0;
  int status = 0;             // not 0: respond with this status only
  int64_t status_times = -1;  // only for this many requests with this tag; -1: for all
  std::optional<std::string> error_body;
  std::vector<std::pair<std::string, std::string>> headers;
  int64_t cut_after = -1;  // tokens of a choice; the connection is closed there
  bool ignore_max_tokens = false;
  int64_t hang_after = -1;
  int64_t error_after = -1;
  std::string error_event;  // JSON of the error object sent in the stream
  bool cut_before_headers = false;
  bool late_headers = false;
  bool no_done = false;
  bool no_usage = false;
  std::optional<std::string> usage;  // JSON that replaces the final usage
  int64_t cached_tokens = -1;
  std::string tag;
  std::vector<std::string> raw_chunks;  // raw bytes, sent instead of the answer
  int64_t repeat_last = 0;              // how often the last raw chunk is sent again; -1: for ever
  std::string raw_type;                 // content type of the raw chunks
  bool marked = false;                  // each token names its engine, request and place
  std::string fault;                    // its name, when a fault of the engine was drawn
  // Exact bytes of the connection, instead of the answer or (raw_after >= 0) after that many tokens
  // of it; and what follows the bytes: "close", "reset", "keep" or "hang".
  std::optional<std::string> raw_response;
  int64_t raw_after = -1;
  std::string raw_end;
  bool cut_reset = false;  // cut_after ends in a reset
  std::string behind;      // bytes of the connection after the end of a whole answer
};

enum class SimKind { kChat, kCompletion, kEmbedding };

struct SimPlan {
  bool chat = true;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool logprobs = false;
  bool flat_errors = false;
  std::string reasoning_field;
  std::string model;
  std::string mark;  // name of the engine and its number of the request
  int64_t prompt_tokens = 0;
  std::vector<SimChoice> choices;
  int64_t unseen_tokens = 0;  // of the candidates that best_of discards
  std::string body;           // the response to an embedding request
  SimScript script;

  int64_t steps() const;  // tokens of the longest choice
  // Replaces "{mark}" by the mark and the request's tag, and "{fill}" by 5 MiB of one letter.
  std::string Filled(const std::string& text) const;
};

// Fills the plan, or returns the refusal. default_script is an object or null. `refused` counts, by
// tag, the requests that a script with status_times has refused so far. Members of fault, an object
// or null, override those of the request's own script.
std::optional<SimError> MakePlan(const Json& body, SimKind kind, const EngineSimOptions& options,
                                 const Json& default_script, SimPlan& plan,
                                 std::map<std::string, int64_t>* refused = nullptr,
                                 const Json& fault = {});

}  // namespace tollgate::test
