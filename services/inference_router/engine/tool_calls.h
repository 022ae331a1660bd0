// Brings the tool calls of one choice into one form: indices 0, 1, … in order of appearance, id and
// name once and first. Engines differ: no index, every index 0, a fresh id in each delta, the name
// in each delta or late, no id at all, arguments as an object, one call instead of a list.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json.h"
#include "common/json/object_scanner.h"
#include "services/inference_router/engine/held_text.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

class ToolCalls {
 public:
  // Reads the tool_calls of a delta or of a whole message and adds what is news to the delta.
  void Read(const json::Value& calls, inference::v1::Delta& delta);
  // At least one call has been shown to the caller.
  bool any() const { return any_; }

 private:
  struct Call {
    std::optional<int64_t> engine_index;
    std::string id;       // escaped
    bool shown = false;   // id and name have been sent
    int index = 0;        // ours, once shown
    std::string waiting;  // arguments that came before the name
    json::ObjectScanner arguments;
    HeldText held;
  };
  Call& Find(const json::Value& item, size_t position, bool named);
  void ReadOne(const json::Value& item, size_t position, inference::v1::Delta& delta);

  std::vector<Call> calls_;
  bool any_ = false;
  int next_index_ = 0;
};

}  // namespace tollgate::inference_router
