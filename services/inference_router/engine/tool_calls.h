// Normalizes the tool calls of one choice: indices 0, 1, … in order of appearance; id and name
// once, in the first delta of a call; no id twice, because agents would answer one call twice.
// Engines differ: no index, index 0 for all, a new id in each delta, one id for all calls, the name
// in each delta or only in a later one, no id, arguments as an object, one call instead of a list.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json.h"
#include "common/json/object_scanner.h"
#include "services/inference_router/engine/byte_budget.h"
#include "services/inference_router/engine/engine_error.h"
#include "services/inference_router/engine/surrogate_joiner.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

class ToolCalls {
 public:
  // Reads the tool_calls of a delta or of a complete message and appends the new parts to the
  // delta. Bytes that are stored or sent are taken from the budget. Returns the limit that is
  // exceeded, or kNone.
  AnswerLimit Read(const json::Value& calls, inference::v1::Delta& delta, ByteBudget& budget);
  // Whether at least one call has been sent to the client.
  bool any() const { return any_; }

 private:
  struct Call {
    std::optional<int64_t> engine_index;
    std::string id;                 // escaped, as the engine gave it
    std::string sent_id;            // another one if the engine gave none, or that of another call
    bool sent = false;              // id and name have been sent
    int index = 0;                  // normalized; set once sent
    std::string pending_arguments;  // received before the name
    size_t argument_bytes = 0;      // in all pieces
    json::ObjectScanner arguments;
    SurrogateJoiner joiner;
  };
  // Returns null if there are too many calls.
  Call* Find(const json::Value& item, size_t position, bool named);
  // Whether a call with this id has been sent.
  bool IsSent(const std::string& id) const;
  AnswerLimit ReadOne(const json::Value& item, size_t position, inference::v1::Delta& delta,
                      ByteBudget& budget);

  std::vector<Call> calls_;
  bool any_ = false;
  int next_index_ = 0;
  size_t last_ = SIZE_MAX;  // the call that got the last piece
};

}  // namespace tollgate::inference_router
