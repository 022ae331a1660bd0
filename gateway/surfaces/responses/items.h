// The output of a response: blocks become items. The same for streams and for single bodies.
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

// One item, as far as it has come. Texts are insides of JSON literals.
struct OutputItem {
  BlockKind kind = BlockKind::kText;
  size_t index = 0;  // output_index
  std::string id;
  std::string text;      // of a call: its arguments
  std::string logprobs;  // elements of the public array, with commas between them
  // Of a call. name_space is a JSON string, or empty.
  std::string call_id, name, name_space;
};

// spec: wire.md 5.2. In progress the item is still without content.
std::string ItemJson(const OutputItem& item, ItemStatus status);
// The one part of an item that is not a call: {"type":"output_text",…}, with these contents.
std::string PartJson(BlockKind kind, std::string_view text, std::string_view logprobs);

// Takes deltas and keeps the items. Whoever wants to tell of them as they come overrides the hooks.
class OutputItems : private BlockHandler {
 public:
  OutputItems(const CanonicalRequest& request, const AnswerStamp& stamp);

  void OnDelta(const inference::v1::Delta& delta) { blocks_.OnDelta(delta); }

  // How an answer that did not break has ended.
  struct Outcome {
    bool completed = true;
    std::string_view incomplete_reason;  // of one that was cut short
  };
  // The end: closes what is open.
  Outcome Finish(const inference::v1::End& end);
  // The array. An item that is still open stands there as incomplete.
  std::string Array() const;

 protected:
  virtual void OnOpened(const OutputItem&) {}
  // logprobs as in OutputItem.
  virtual void OnPiece(const OutputItem&, std::string_view /*inside*/,
                       std::string_view /*logprobs*/) {}
  virtual void OnClosed(const OutputItem&, std::string_view /*item_json*/) {}

 private:
  void OnBlockStart(const BlockStart& start) override;
  void OnBlockPiece(std::string_view inside, std::string_view logprobs_json) override;
  // Whether it was the last one, and so perhaps cut short, is known at the next start or at the
  // end.
  void OnBlockEnd() override {}
  void Close(ItemStatus status);

  const std::shared_ptr<SurfaceState> state_;
  const std::map<std::string, std::string>& namespaces_;
  const std::string id_;
  BlockSequencer blocks_{*this};
  std::string closed_;  // items, with commas between them
  size_t count_ = 0;
  bool open_ = false;
  OutputItem item_;  // the open one
};

}  // namespace tollgate::gateway
