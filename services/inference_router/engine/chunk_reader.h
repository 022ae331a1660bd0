// Translates what an OpenAI-compatible engine sends — the chunks of a stream, or one whole answer —
// into canonical events. Text is copied as the escaped bytes that came: nothing is decoded and
// encoded again. Engines' extras, role markers and empty deltas are left out. spec: wire.md
// 2, 10.2.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json.h"
#include "services/inference_router/domain/engine_usage.h"
#include "services/inference_router/engine/engine_error.h"
#include "services/inference_router/engine/held_text.h"
#include "services/inference_router/engine/tool_calls.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

class ChunkReader {
 public:
  struct Options {
    inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_CHAT;
    // Choices with an index outside are dropped.
    int choices = 1;
    // Context window of the model, for error texts; 0 = unknown.
    int64_t window = 0;
  };
  enum class Status {
    kMore,   // the stream goes on
    kDone,   // the engine's end marker
    kError,  // see failure()
  };

  explicit ChunkReader(const Options& options);

  // Reads the data of one server-sent event; appends the deltas in it.
  Status Read(std::string_view data, std::vector<inference::v1::Event>& out);
  // Reads the whole answer of an engine that did not stream.
  Status ReadWhole(std::string_view body, std::vector<inference::v1::Event>& out);

  // The usage object of the last chunk read, if it had one.
  const std::optional<EngineUsage>& usage() const { return usage_; }
  const EngineFailure& failure() const { return failure_; }
  // Every choice that was asked for has its finish reason: whatever follows is no part of the
  // answer.
  bool finished() const;
  // Every choice that has appeared has its finish reason, and at least one has appeared. Some
  // engines give fewer than were asked for; whether that was all, only their end marker tells.
  bool may_be_all() const;

 private:
  struct Choice {
    bool seen = false;
    bool finished = false;
    ToolCalls tools;
    HeldText content;
    HeldText reasoning;
    HeldText refusal;
  };

  Status ReadObject(const json::Value& root, std::vector<inference::v1::Event>& out);
  bool ReadChoice(const json::Value& item, std::vector<inference::v1::Event>& out);
  void ReadBody(const json::Value& item, Choice& choice, inference::v1::Delta& delta);
  bool ReadFinish(const json::Value& item, Choice& choice, inference::v1::Delta& delta);
  void ReadUsage(const json::Value& root, const json::Value& choices);
  Status Fail(EngineFailure failure);

  Options options_;
  std::vector<Choice> choices_;
  std::optional<EngineUsage> usage_;
  EngineFailure failure_;
};

}  // namespace tollgate::inference_router
