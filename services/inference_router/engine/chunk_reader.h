// Translates the response of an OpenAI-compatible engine (the chunks of a stream, or one complete
// response) into canonical events. Text is copied as the escaped bytes received, without decoding.
// Engine-specific members, role markers and empty deltas are dropped. See docs/design/wire.md 2,
// 10.2.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json.h"
#include "services/inference_router/domain/engine_usage.h"
#include "services/inference_router/engine/byte_budget.h"
#include "services/inference_router/engine/chunk_template.h"
#include "services/inference_router/engine/engine_error.h"
#include "services/inference_router/engine/surrogate_joiner.h"
#include "services/inference_router/engine/tool_calls.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

class ChunkReader {
 public:
  struct Options {
    inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_CHAT;
    // Choices with an index outside [0, choices) are dropped.
    int choices = 1;
    // Context window of the model in tokens, for error messages; 0 = unknown.
    int64_t window = 0;
    // Usage reports without choices belong to the choice that has just ended instead of all choices
    // (llama.cpp).
    bool usage_follows_choice = false;
    // Limit of the answer in bytes (H75): text, reasoning, tool calls, log probabilities, and a
    // small amount for each piece that an encoder may have to store separately.
    int64_t max_answer_bytes = kMaxAnswerBytes;
    // False: parses every chunk. For tests that compare both ways.
    bool templates = true;
  };
  static constexpr int64_t kMaxAnswerBytes = 32 << 20;
  enum class Status {
    kMore,   // the stream continues
    kDone,   // end marker ([DONE]), or the complete response was read
    kError,  // see failure()
  };

  explicit ChunkReader(const Options& options);

  // Reads the data of one server-sent event and appends its deltas.
  Status Read(std::string_view data, std::vector<inference::v1::Event>& out);
  // Reads the complete response of an engine that did not stream.
  Status ReadWhole(std::string_view body, std::vector<inference::v1::Event>& out);

  // The usage object of the last chunk, if it had one.
  const std::optional<EngineUsage>& usage() const { return usage_; }
  const EngineFailure& failure() const { return failure_; }
  // Whether every requested choice has its finish reason, so that the answer is complete.
  bool finished() const;
  // Whether at least one choice has been seen, and every choice seen has its finish reason. Some
  // engines send fewer choices than requested; only the end marker shows that no more follow.
  bool seen_choices_finished() const;

 private:
  // The kind of a choice's last piece. Encoders store pieces of different kinds separately.
  enum class Piece : uint8_t { kNone, kText, kReasoning, kRefusal, kCall };
  struct Choice {
    Piece last = Piece::kNone;
    bool seen = false;
    bool finished = false;
    ToolCalls tools;
    SurrogateJoiner content;
    SurrogateJoiner reasoning;
    SurrogateJoiner refusal;
  };

  // Reads a chunk that differs from the last one only in its text and counts. Empty if it differs
  // in more.
  std::optional<Status> ReadSimilar(std::string_view data, std::vector<inference::v1::Event>& out);
  // Call after a chunk that produced these events.
  void Learn(std::string_view data, const json::Value& root,
             std::span<const inference::v1::Event> events);
  Status ReadObject(const json::Value& root, std::vector<inference::v1::Event>& out);
  // Returns false on a failure; see failure().
  bool ReadChoice(const json::Value& item, std::vector<inference::v1::Event>& out);
  AnswerLimit ReadBody(const json::Value& item, Choice& choice, inference::v1::Delta& delta);
  std::string TakeText(std::string_view text, Piece kind, Choice& choice, SurrogateJoiner& joiner);
  bool ReadFinish(const json::Value& item, Choice& choice, inference::v1::Delta& delta);
  void ReadUsage(const json::Value& root, const json::Value& choices);
  Status Fail(EngineFailure failure);

  Options options_;
  ByteBudget budget_;
  int last_finished_ = -1;  // the choice that ended last, until its usage arrives
  std::vector<Choice> choices_;
  std::optional<EngineUsage> usage_;
  EngineFailure failure_;
  ChunkTemplate template_;
  int template_choice_ = 0;
  Piece template_piece_ = Piece::kNone;
  int misses_ = 0;  // templates in a row that matched no chunk
};

}  // namespace tollgate::inference_router
