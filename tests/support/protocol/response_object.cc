#include "tests/support/protocol/response_object.h"

namespace tollgate::test {
namespace {

bool IsStringOrNull(const Json& value) { return value.is_string() || value.is_null(); }
bool IsIntegerOrNull(const Json& value) { return IsInteger(value) || value.is_null(); }

void CheckStatus(const Json& response, Findings& find) {
  const std::string& status = response["status"].str();
  find.Expect(OneOf(status, {"in_progress", "completed", "incomplete", "failed"}),
              "status is a public one");
  find.Expect(IsInteger(response["completed_at"]) == (status == "completed"),
              "completed_at is set when completed, and only then");
  find.Expect(response["error"].is_object() == (status == "failed"),
              "error is set when failed, and only then");
  find.Expect(response["incomplete_details"].is_object() == (status == "incomplete"),
              "incomplete_details is set when incomplete, and only then");
  if (status == "failed") {
    find.Keys(response["error"], "error", {"code", "message"});
    find.NonEmptyString(response["error"]["code"], "error.code");
    find.NonEmptyString(response["error"]["message"], "error.message");
  }
  if (status == "incomplete") {
    find.Keys(response["incomplete_details"], "incomplete_details", {"reason"});
    find.Expect(OneOf(response["incomplete_details"]["reason"].str(),
                      {"max_output_tokens", "content_filter"}),
                "the reason is a public one");
  }
  const bool counted = status == "completed" || status == "incomplete";
  find.Expect(response["usage"].is_object() == counted, "usage is set when the answer has ended");
}

void CheckEcho(const Json& response, Findings& find) {
  for (const char* name :
       {"instructions", "previous_response_id", "safety_identifier", "prompt_cache_key"}) {
    if (!IsStringOrNull(response[name])) {
      find.Expect(false, std::string(name) + " is a string or null");
    }
  }
  for (const char* name : {"max_output_tokens", "max_tool_calls"}) {
    if (!IsIntegerOrNull(response[name])) {
      find.Expect(false, std::string(name) + " is an integer or null");
    }
  }
  for (const char* name : {"temperature", "top_p", "presence_penalty", "frequency_penalty"}) {
    if (!response[name].is_number()) {
      find.Expect(false, std::string(name) + " is a number");
    }
  }
  for (const char* name : {"parallel_tool_calls", "store", "background"}) {
    if (!response[name].is_bool()) {
      find.Expect(false, std::string(name) + " is true or false");
    }
  }
  find.Expect(!response["store"].boolean() && !response["background"].boolean(),
              "nothing is stored and nothing runs in the background");
  find.Integer(response["top_logprobs"], "top_logprobs");
  find.Expect(response["metadata"].is_object(), "metadata is an object");
  find.Expect(response["tools"].is_array(), "tools is an array");
  find.Expect(response["tool_choice"].is_string() || response["tool_choice"].is_object(),
              "tool_choice is a string or an object");
  find.Expect(response["text"]["format"]["type"].is_string(), "text.format has a type");
  find.NonEmptyString(response["truncation"], "truncation");
  find.NonEmptyString(response["service_tier"], "service_tier");
  if (!response["reasoning"].is_null()) {
    find.Keys(response["reasoning"], "reasoning", {"effort", "summary"});
  }
  for (const Json& tool : response["tools"].elements()) {
    find.Keys(tool, "a tool", {"type", "name", "description", "parameters", "strict"});
  }
}

}  // namespace

void CheckResponseObject(const Json& response, Findings& find) {
  // `user` is echoed when the request has it.
  find.Keys(response, "the response",
            {"id",
             "object",
             "created_at",
             "completed_at",
             "status",
             "error",
             "incomplete_details",
             "instructions",
             "model",
             "output",
             "tools",
             "tool_choice",
             "parallel_tool_calls",
             "temperature",
             "top_p",
             "presence_penalty",
             "frequency_penalty",
             "top_logprobs",
             "metadata",
             "max_output_tokens",
             "max_tool_calls",
             "previous_response_id",
             "safety_identifier",
             "prompt_cache_key",
             "reasoning",
             "text",
             "truncation",
             "usage",
             "store",
             "background",
             "service_tier"},
            {"user"});
  find.Expect(response["id"].str().starts_with("resp_") && response["id"].str().size() > 5,
              "id is resp_…");
  find.Expect(response["object"].str() == "response", "object is response");
  find.Integer(response["created_at"], "created_at", 1);
  find.NonEmptyString(response["model"], "model");
  find.Expect(response["output"].is_array(), "output is an array");
  CheckStatus(response, find);
  CheckEcho(response, find);
}

void CheckResponseItem(const Json& item, AssembledChoice& choice, Findings& find) {
  const std::string& type = item["type"].str();
  const auto done = [&] {
    find.Expect(OneOf(item["status"].str(), {"completed", "incomplete"}),
                "a whole item is completed or incomplete");
  };
  if (type == "reasoning") {
    find.Keys(item, "a reasoning item", {"id", "type", "summary"},
              {"content", "encrypted_content", "status"});
    find.Expect(item["id"].str().starts_with("rs_"), "a reasoning item's id is rs_…");
    find.Expect(item["summary"].is_array(), "summary is an array");
    for (const Json& part : item["summary"].elements()) {
      find.Keys(part, "a summary part", {"type", "text"});
      find.Expect(part["type"].str() == "summary_text", "a summary part is summary_text");
      choice.reasoning += part["text"].str();
    }
  } else if (type == "message") {
    find.Keys(item, "a message item", {"id", "type", "status", "role", "content"});
    find.Expect(item["id"].str().starts_with("msg_"), "a message item's id is msg_…");
    find.Expect(item["role"].str() == "assistant", "a message item's role is assistant");
    done();
    for (const Json& part : item["content"].elements()) {
      if (part["type"].str() == "refusal") {
        find.Keys(part, "a refusal part", {"type", "refusal"});
        choice.refusal += part["refusal"].str();
        continue;
      }
      find.Keys(part, "a text part", {"type", "text", "annotations", "logprobs"});
      find.Expect(part["type"].str() == "output_text", "a text part is output_text");
      find.Expect(part["annotations"].is_array() && part["logprobs"].is_array(),
                  "annotations and logprobs are arrays");
      choice.text += part["text"].str();
      for (const Json& token : part["logprobs"].elements()) {
        choice.logprob_tokens.push_back(token["token"].str());
      }
    }
  } else if (type == "function_call") {
    find.Keys(item, "a function_call item",
              {"id", "type", "status", "call_id", "name", "arguments"}, {"namespace"});
    find.Expect(item["id"].str().starts_with("fc_"), "a function_call item's id is fc_…");
    find.NonEmptyString(item["call_id"], "call_id");
    find.NonEmptyString(item["name"], "name");
    find.String(item["arguments"], "arguments");
    done();
    for (const AssembledCall& other : choice.calls) {
      find.Expect(other.id != item["call_id"].str(), "calls have ids of their own");
    }
    choice.calls.push_back({item["call_id"].str(), item["name"].str(), item["arguments"].str()});
  } else {
    find.Expect(false, "an item is reasoning, message or function_call");
  }
}

void CheckResponseOutput(const Json& response, AssembledChoice& choice, Findings& find) {
  const std::vector<Json>& items = response["output"].elements();
  for (size_t i = 0; i < items.size(); ++i) {
    CheckResponseItem(items[i], choice, find);
    for (size_t k = 0; k < i; ++k) {
      find.Expect(items[k]["id"].str() != items[i]["id"].str(), "items have ids of their own");
    }
    if (items[i]["status"].str() != "incomplete") continue;
    find.Expect(i + 1 == items.size(), "an incomplete item is the last one");
    find.Expect(response["status"].str() != "completed", "a completed response has no such item");
  }
}

AssembledUsage CheckResponseUsage(const Json& usage, Findings& find) {
  find.Keys(usage, "usage",
            {"input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details",
             "total_tokens"});
  const Json& input = usage["input_tokens_details"];
  const Json& output = usage["output_tokens_details"];
  find.Keys(input, "input_tokens_details", {"cached_tokens", "cache_write_tokens"});
  find.Keys(output, "output_tokens_details", {"reasoning_tokens"});
  for (const char* name : {"input_tokens", "output_tokens", "total_tokens"}) {
    find.Integer(usage[name], name);
  }
  for (const char* name : {"cached_tokens", "cache_write_tokens"}) find.Integer(input[name], name);
  find.Integer(output["reasoning_tokens"], "reasoning_tokens");
  AssembledUsage read{usage["input_tokens"].integer(), usage["output_tokens"].integer(),
                      input["cached_tokens"].integer(), input["cache_write_tokens"].integer(),
                      output["reasoning_tokens"].integer()};
  find.Expect(usage["total_tokens"].integer() == read.prompt + read.completion,
              "total_tokens is the sum");
  find.Expect(read.cached + read.cache_write <= read.prompt, "cached tokens are part of the input");
  find.Expect(read.reasoning <= read.completion, "reasoning is part of the output");
  return read;
}

std::string ResponseFinish(const Json& response) {
  const std::string& status = response["status"].str();
  return status == "incomplete" ? response["incomplete_details"]["reason"].str() : status;
}

}  // namespace tollgate::test
