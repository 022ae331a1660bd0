#include "tests/support/protocol/responses_checker.h"

#include "tests/support/protocol/public_stream.h"
#include "tests/support/protocol/response_object.h"

namespace tollgate::test {
namespace {

class ResponsesChecker {
 public:
  explicit ResponsesChecker(Checked& out) : out_(out), find_(out.violations) {
    out_.choices.resize(1);
  }
  void Stream(std::string_view bytes);

 private:
  struct Part {
    std::string type;  // summary_text, output_text, refusal
    std::string text;  // the deltas so far
    bool text_done = false;
    bool done = false;
  };
  struct Item {
    std::string id, type;
    Json added;
    Json done;  // null until it is
    std::vector<Part> parts;
    std::string arguments;
    bool arguments_done = false;
  };
  // The five events of a part, by the kind of part: their names and index members.
  struct PartKind {
    const char* item_type;
    const char* part_type;
    const char* index;   // content_index or summary_index
    const char* member;  // of part and of the done event
    bool logprobs;
  };
  static constexpr PartKind kSummary = {"reasoning", "summary_text", "summary_index", "text",
                                        false};
  static constexpr PartKind kText = {"message", "output_text", "content_index", "text", true};
  static constexpr PartKind kRefusal = {"message", "refusal", "content_index", "refusal", false};

  void Event(const PublicEvent& event);
  void Response(const Json& response);
  void Begin(const std::string& type, const Json& data);
  bool ItemEvent(const std::string& type, const Json& data);
  bool PartEvent(const std::string& type, const Json& data);
  void ItemAdded(const Json& data);
  void ItemDone(const Json& data);
  Item* OpenItem(const Json& data, const char* item_type);
  Part* OpenPart(const Json& data, const PartKind& kind,
                 std::vector<std::string_view> more_members);
  void PartAdded(const Json& data, const PartKind& kind);
  void PartDelta(const Json& data, const PartKind& kind);
  void PartTextDone(const Json& data, const PartKind& kind);
  void PartDone(const Json& data, const PartKind& kind);
  void ArgumentsDelta(const Json& data);
  void ArgumentsDone(const Json& data);
  void Terminal(const std::string& type, const Json& data);
  void ErrorEvent(const Json& data);

  Checked& out_;
  Findings find_;
  int64_t events_ = 0;
  std::vector<Item> items_;
  bool terminal_ = false;
  bool done_marker_ = false;
};

void ResponsesChecker::Stream(std::string_view bytes) {
  ForEachEvent(bytes, out_, find_, [this](const PublicEvent& event) { Event(event); });
  find_.Expect(out_.ending != Ending::kNone, "the stream ends in a terminal event");
  find_.Expect(done_marker_, "[DONE] follows the terminal event");
}

void ResponsesChecker::Event(const PublicEvent& event) {
  find_.Expect(!done_marker_, "nothing follows [DONE]");
  if (event.is_done()) {
    find_.Expect(event.name.empty(), "[DONE] has no event line");
    find_.Expect(terminal_, "[DONE] comes after the terminal event");
    done_marker_ = true;
    return;
  }
  const Json& data = event.json;
  const std::string& type = data["type"].str();
  find_.Expect(event.name == type, "the event line equals the type");
  find_.Expect(!terminal_, "only [DONE] follows the terminal event");
  find_.Expect(data["sequence_number"].Dump() == std::to_string(events_),
               "sequence_number grows by one from 0");
  find_.Expect((events_ == 0) == (type == "response.created"),
               "response.created is the first event and only that");
  find_.Expect((events_ == 1) == (type == "response.in_progress"),
               "response.in_progress is the second event and only that");
  ++events_;
  if (type == "response.created" || type == "response.in_progress") return Begin(type, data);
  if (type == "response.completed" || type == "response.incomplete" || type == "response.failed") {
    return Terminal(type, data);
  }
  if (type == "error") return ErrorEvent(data);
  find_.Expect(ItemEvent(type, data) || PartEvent(type, data), "the event type is a public one");
}

void ResponsesChecker::Response(const Json& response) {
  CheckResponseObject(response, find_);
  if (out_.id.empty()) {
    out_.id = response["id"].str();
    out_.model = response["model"].str();
  }
  find_.Expect(response["id"].str() == out_.id && response["model"].str() == out_.model,
               "the response's id and model stay the same");
}

void ResponsesChecker::Begin(const std::string& type, const Json& data) {
  find_.Keys(data, type, {"type", "sequence_number", "response"});
  Response(data["response"]);
  find_.Expect(data["response"]["status"].str() == "in_progress", "it begins in progress");
  find_.Expect(data["response"]["output"].size() == 0, "it begins without output");
}

bool ResponsesChecker::ItemEvent(const std::string& type, const Json& data) {
  if (type == "response.output_item.added") {
    ItemAdded(data);
  } else if (type == "response.output_item.done") {
    ItemDone(data);
  } else if (type == "response.function_call_arguments.delta") {
    ArgumentsDelta(data);
  } else if (type == "response.function_call_arguments.done") {
    ArgumentsDone(data);
  } else {
    return false;
  }
  return true;
}

bool ResponsesChecker::PartEvent(const std::string& type, const Json& data) {
  const PartKind& content = data["part"]["type"].str() == "refusal" ? kRefusal : kText;
  if (type == "response.reasoning_summary_part.added") {
    PartAdded(data, kSummary);
  } else if (type == "response.reasoning_summary_text.delta") {
    PartDelta(data, kSummary);
  } else if (type == "response.reasoning_summary_text.done") {
    PartTextDone(data, kSummary);
  } else if (type == "response.reasoning_summary_part.done") {
    PartDone(data, kSummary);
  } else if (type == "response.content_part.added") {
    PartAdded(data, content);
  } else if (type == "response.output_text.delta") {
    PartDelta(data, kText);
  } else if (type == "response.output_text.done") {
    PartTextDone(data, kText);
  } else if (type == "response.refusal.delta") {
    PartDelta(data, kRefusal);
  } else if (type == "response.refusal.done") {
    PartTextDone(data, kRefusal);
  } else if (type == "response.content_part.done") {
    PartDone(data, content);
  } else {
    return false;
  }
  return true;
}

void ResponsesChecker::ItemAdded(const Json& data) {
  find_.Keys(data, "output_item.added", {"type", "sequence_number", "output_index", "item"});
  find_.Expect(items_.empty() || !items_.back().done.is_null(), "items do not overlap");
  find_.Expect(data["output_index"].Dump() == std::to_string(items_.size()),
               "output_index counts up from 0");
  const Json& item = data["item"];
  for (const Item& other : items_) {
    find_.Expect(other.id != item["id"].str(), "items have ids of their own");
  }
  find_.NonEmptyString(item["id"], "an item's id");
  const std::string& type = item["type"].str();
  if (type == "reasoning") {
    find_.Keys(item, "the item", {"id", "type", "summary"}, {"status", "encrypted_content"});
    find_.Expect(item["summary"].is_array() && item["summary"].size() == 0, "it begins empty");
  } else if (type == "message") {
    find_.Keys(item, "the item", {"id", "type", "status", "role", "content"});
    find_.Expect(item["content"].is_array() && item["content"].size() == 0, "it begins empty");
    find_.Expect(item["role"].str() == "assistant", "a message item's role is assistant");
  } else if (type == "function_call") {
    find_.Keys(item, "the item", {"id", "type", "status", "call_id", "name", "arguments"},
               {"namespace"});
    find_.Expect(item["arguments"].is_string() && item["arguments"].str().empty(),
                 "it begins empty");
    find_.NonEmptyString(item["call_id"], "call_id");
    find_.NonEmptyString(item["name"], "name");
  } else {
    find_.Expect(false, "an item is reasoning, message or function_call");
  }
  find_.Expect(!item.has("status") || item["status"].str() == "in_progress",
               "an item begins in progress");
  items_.push_back({item["id"].str(), type, item, Json(), {}, "", false});
}

ResponsesChecker::Item* ResponsesChecker::OpenItem(const Json& data, const char* item_type) {
  if (!find_.Expect(!items_.empty() && items_.back().done.is_null(), "an item is open")) {
    return nullptr;
  }
  Item& item = items_.back();
  find_.Expect(data["output_index"].Dump() == std::to_string(items_.size() - 1),
               "output_index is the open item's");
  find_.Expect(data["item_id"].str() == item.id, "item_id is the open item's");
  find_.Expect(item.type == item_type, "an event fits its item's type");
  return item.type == item_type ? &item : nullptr;
}

void ResponsesChecker::PartAdded(const Json& data, const PartKind& kind) {
  find_.Keys(data, "part.added",
             {"type", "sequence_number", "item_id", "output_index", kind.index, "part"});
  Item* item = OpenItem(data, kind.item_type);
  if (item == nullptr) return;
  find_.Expect(item->parts.empty() || item->parts.back().done, "parts do not overlap");
  find_.Expect(data[kind.index].Dump() == std::to_string(item->parts.size()),
               "parts count up from 0");
  const Json& part = data["part"];
  std::vector<std::string_view> members = {"type", kind.member};
  if (kind.logprobs) members.insert(members.end(), {"annotations", "logprobs"});
  find_.Keys(part, "the part", members);
  find_.Expect(part["type"].str() == kind.part_type, "a part fits its item");
  find_.Expect(part[kind.member].is_string() && part[kind.member].str().empty(),
               "a part begins empty");
  item->parts.push_back({part["type"].str(), "", false, false});
}

ResponsesChecker::Part* ResponsesChecker::OpenPart(const Json& data, const PartKind& kind,
                                                   std::vector<std::string_view> more_members) {
  std::vector<std::string_view> members = {"type", "sequence_number", "item_id", "output_index",
                                           kind.index};
  members.insert(members.end(), more_members.begin(), more_members.end());
  find_.Keys(data, data["type"].str(), members);
  Item* item = OpenItem(data, kind.item_type);
  if (item == nullptr) return nullptr;
  if (!find_.Expect(!item->parts.empty() && !item->parts.back().done, "a part is open")) {
    return nullptr;
  }
  find_.Expect(data[kind.index].Dump() == std::to_string(item->parts.size() - 1),
               "the index is the open part's");
  Part& part = item->parts.back();
  find_.Expect(part.type == kind.part_type, "an event fits its part's type");
  return &part;
}

void ResponsesChecker::PartDelta(const Json& data, const PartKind& kind) {
  std::vector<std::string_view> more = {"delta"};
  if (kind.logprobs) more.emplace_back("logprobs");
  Part* part = OpenPart(data, kind, std::move(more));
  if (part == nullptr) return;
  if (kind.logprobs) find_.Expect(data["logprobs"].is_array(), "logprobs is an array");
  find_.String(data["delta"], "delta");
  find_.Expect(!part->text_done, "no delta follows the done event");
  part->text += data["delta"].str();
}

void ResponsesChecker::PartTextDone(const Json& data, const PartKind& kind) {
  std::vector<std::string_view> more = {kind.member};
  if (kind.logprobs) more.emplace_back("logprobs");
  Part* part = OpenPart(data, kind, std::move(more));
  if (part == nullptr) return;
  find_.Expect(!part->text_done, "a part's text is done once");
  find_.Expect(data[kind.member].str() == part->text, "a done text is the joined deltas");
  part->text_done = true;
}

void ResponsesChecker::PartDone(const Json& data, const PartKind& kind) {
  Part* part = OpenPart(data, kind, {"part"});
  if (part == nullptr) return;
  find_.Expect(part->text_done, "a part's text is done before the part");
  find_.Expect(data["part"]["type"].str() == part->type, "a part keeps its type");
  find_.Expect(data["part"][kind.member].str() == part->text, "a done part is the joined deltas");
  part->done = true;
}

void ResponsesChecker::ArgumentsDelta(const Json& data) {
  find_.Keys(data, "arguments.delta",
             {"type", "sequence_number", "item_id", "output_index", "delta"});
  Item* item = OpenItem(data, "function_call");
  if (item == nullptr) return;
  find_.String(data["delta"], "delta");
  find_.Expect(!item->arguments_done, "no delta follows the done event");
  item->arguments += data["delta"].str();
}

void ResponsesChecker::ArgumentsDone(const Json& data) {
  find_.Keys(data, "arguments.done",
             {"type", "sequence_number", "item_id", "output_index", "name", "arguments"});
  Item* item = OpenItem(data, "function_call");
  if (item == nullptr) return;
  find_.Expect(!item->arguments_done, "arguments are done once");
  find_.Expect(data["name"].str() == item->added["name"].str(), "a call keeps its name");
  find_.Expect(data["arguments"].str() == item->arguments, "done arguments are the joined deltas");
  item->arguments_done = true;
}

void ResponsesChecker::ItemDone(const Json& data) {
  find_.Keys(data, "output_item.done", {"type", "sequence_number", "output_index", "item"});
  if (!find_.Expect(!items_.empty() && items_.back().done.is_null(), "an item is open")) return;
  Item& item = items_.back();
  const Json& done = data["item"];
  find_.Expect(data["output_index"].Dump() == std::to_string(items_.size() - 1),
               "output_index is the open item's");
  find_.Expect(done["id"].str() == item.id && done["type"].str() == item.type,
               "an item keeps its id and type");
  AssembledChoice whole;
  CheckResponseItem(done, whole, find_);
  AssembledChoice streamed;
  for (const Part& part : item.parts) {
    find_.Expect(part.done, "an item's parts are done before it");
    (part.type == "summary_text" ? streamed.reasoning
     : part.type == "refusal"    ? streamed.refusal
                                 : streamed.text) += part.text;
  }
  if (item.type == "function_call") {
    find_.Expect(item.arguments_done, "arguments are done before their item");
    streamed.calls.push_back(
        {item.added["call_id"].str(), item.added["name"].str(), item.arguments});
  }
  whole.logprob_tokens.clear();
  find_.Expect(whole == streamed, "a done item is what was streamed");
  const char* parts = item.type == "reasoning" ? "summary" : "content";
  find_.Expect(item.type == "function_call" || done[parts].size() == item.parts.size(),
               "a done item has the parts that were announced");
  item.done = done;
}

void ResponsesChecker::Terminal(const std::string& type, const Json& data) {
  find_.Keys(data, type, {"type", "sequence_number", "response"});
  terminal_ = true;
  const Json& response = data["response"];
  Response(response);
  find_.Expect("response." + response["status"].str() == type, "the status is the event's");
  out_.choices[0] = AssembledChoice();
  CheckResponseOutput(response, out_.choices[0], find_);
  out_.choices[0].finish = ResponseFinish(response);
  if (response["usage"].is_object()) out_.usage = CheckResponseUsage(response["usage"], find_);
  const Json& output = response["output"];
  find_.Expect(output.size() == items_.size(), "output has exactly the announced items");
  for (size_t i = 0; i < items_.size(); ++i) {
    find_.Expect(output[i]["id"].str() == items_[i].id, "output has the items in their order");
    // An item cut off by a failure is not done, and is listed unchanged.
    if (type == "response.failed" && i + 1 == items_.size() && items_[i].done.is_null()) {
      find_.Expect(output[i]["status"].str() == "incomplete", "what was cut off is incomplete");
      continue;
    }
    find_.Expect(!items_[i].done.is_null(), "every item is done");
    find_.Expect(items_[i].done == output[i], "output is what was streamed");
  }
  out_.ending = type == "response.failed" ? Ending::kError : Ending::kWell;
  out_.error_code = response["error"]["code"].str();
}

// Legal too, though response.failed is preferred.
void ResponsesChecker::ErrorEvent(const Json& data) {
  find_.Keys(data, "error", {"type", "sequence_number", "code", "message", "param"}, {"error"});
  find_.NonEmptyString(data["code"], "code");
  find_.NonEmptyString(data["message"], "message");
  out_.error_code = data["code"].str();
  out_.ending = Ending::kError;
  terminal_ = true;
}

}  // namespace

Checked CheckResponsesStream(std::string_view bytes) {
  Checked checked;
  ResponsesChecker(checked).Stream(bytes);
  return checked;
}

Checked CheckResponsesBody(std::string_view body) {
  Checked checked;
  checked.choices.resize(1);
  Findings find(checked.violations);
  find.Expect(IsUtf8(body), "the body is UTF-8");
  const std::optional<Json> json = Json::Parse(body);
  if (!find.Expect(json && json->is_object(), "the body is a JSON object")) return checked;
  CheckResponseObject(*json, find);
  checked.id = (*json)["id"].str();
  checked.model = (*json)["model"].str();
  CheckResponseOutput(*json, checked.choices[0], find);
  checked.choices[0].finish = ResponseFinish(*json);
  find.Expect(OneOf((*json)["status"].str(), {"completed", "incomplete"}), "the answer has ended");
  if ((*json)["usage"].is_object()) checked.usage = CheckResponseUsage((*json)["usage"], find);
  checked.ending = Ending::kWell;
  return checked;
}

}  // namespace tollgate::test
