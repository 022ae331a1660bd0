// The output items of a response, built from blocks. Used by both encoders.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/responses/request.h"
#include "gateway/surfaces/shared/blocks.h"

namespace tollgate::gateway {

enum class ItemStatus : uint8_t { kInProgress, kCompleted, kIncomplete };

// One item with its content so far. Texts are contents of JSON strings.
struct OutputItem {
  BlockKind kind = BlockKind::kText;
  size_t index = 0;  // output_index
  std::string id;
  std::string text;               // for a call: its arguments
  std::string logprobs;           // comma-separated elements of the public array
  std::string encrypted_content;  // set for reasoning; empty: none
  // Set for calls only. name_space is a JSON string, or empty.
  std::string call_id, name, name_space;
};

// See docs/design/wire.md 5.2. An item in progress has no content.
std::string ItemJson(const OutputItem& item, ItemStatus status);
// The only part of a message or reasoning item: {"type":"output_text",…}.
std::string PartJson(BlockKind kind, std::string_view text, std::string_view logprobs);

// Builds the items from deltas. The stream encoder overrides the hooks to send them as they arrive.
class OutputItems : private BlockHandler {
 public:
  OutputItems(const CanonicalRequest& request, const ResponseStamp& stamp);

  void OnDelta(const inference::v1::Delta& delta) { blocks_.OnDelta(delta); }

  // How a response ended that has no error.
  struct Outcome {
    bool completed = true;
    std::string_view incomplete_reason;  // set if not completed
  };
  // Ends the response: closes the open item.
  Outcome Finish(const inference::v1::End& end);
  // The JSON array of all items. An open item is incomplete.
  std::string Array() const;

 protected:
  virtual void OnItemAdded(const OutputItem&) {}
  // logprobs as in OutputItem.
  virtual void OnItemDelta(const OutputItem&, std::string_view /*escaped*/,
                           std::string_view /*logprobs*/) {}
  virtual void OnItemDone(const OutputItem&, std::string_view /*item_json*/) {}

 private:
  void OnBlockStart(const BlockStart& start) override;
  void OnBlockDelta(std::string_view escaped, std::string_view logprobs_json) override;
  // Does nothing: the item is closed at the next start or at the end, so only the last item can be
  // incomplete.
  void OnBlockEnd() override {}
  void Close(ItemStatus status);

  const std::shared_ptr<SurfaceState> state_;
  const std::map<std::string, std::string>& namespaces_;
  const ReasoningSeal seal_;  // for the answering model
  const std::string id_;
  const int64_t created_s_;
  BlockSequencer blocks_{*this};
  std::string closed_;  // comma-separated items
  size_t count_ = 0;
  bool open_ = false;
  OutputItem item_;  // the open item
};

}  // namespace tollgate::gateway
