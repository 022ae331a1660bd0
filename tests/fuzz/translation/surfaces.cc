#include "tests/fuzz/translation/surfaces.h"

#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "gateway/surfaces/completions/completions_surface.h"
#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/surfaces/responses/responses_surface.h"
#include "tests/support/protocol/chat_checker.h"
#include "tests/support/protocol/completions_checker.h"
#include "tests/support/protocol/messages_checker.h"
#include "tests/support/protocol/responses_checker.h"

namespace tollgate::fuzz {
namespace {

std::string Stream(const Asked& asked) { return asked.stream ? R"(,"stream":true)" : ""; }

std::string StreamWithUsage(const Asked& asked) {
  if (!asked.include_usage) return Stream(asked);
  return Stream(asked) + R"(,"stream_options":{"include_usage":true})";
}

std::string ChatRequest(const Asked& asked) {
  return R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],"logprobs":true,"n":)" +
         std::to_string(asked.choices) + StreamWithUsage(asked) + "}";
}

std::string ChatFinish(const Choice& choice) {
  if (choice.finish == Finish::kLength) return "length";
  if (choice.finish == Finish::kFilter) return "content_filter";
  return choice.calls.empty() ? "stop" : "tool_calls";
}

const SurfaceRow kChat = {
    .name = "chat",
    .surface = gateway::ChatSurface,
    .kind = inference::v1::REQUEST_KIND_CHAT,
    .abilities = {.chat = true, .max_choices = 3},
    .request = ChatRequest,
    .check_stream =
        [](std::string_view bytes, const Asked& asked) {
          return test::CheckChatStream(bytes, {asked.choices, asked.include_usage});
        },
    .check_body =
        [](std::string_view body, const Asked& asked) {
          return test::CheckChatBody(body, {asked.choices, false});
        },
    .finish = ChatFinish,
    .tells_logprobs = true,
};

std::string CompletionsRequest(const Asked& asked) {
  return R"({"model":"sim/text","prompt":"x","logprobs":1,"n":)" + std::to_string(asked.choices) +
         StreamWithUsage(asked) + "}";
}

std::string CompletionsFinish(const Choice& choice) {
  if (choice.finish == Finish::kLength) return "length";
  return choice.finish == Finish::kFilter ? "content_filter" : "stop";
}

const SurfaceRow kCompletions = {
    .name = "completions",
    .surface = gateway::CompletionsSurface,
    .kind = inference::v1::REQUEST_KIND_COMPLETION,
    .abilities = {.chat = false, .max_choices = 3},
    .request = CompletionsRequest,
    .check_stream =
        [](std::string_view bytes, const Asked& asked) {
          return test::CheckCompletionsStream(bytes, {asked.choices, asked.include_usage});
        },
    .check_body =
        [](std::string_view body, const Asked& asked) {
          return test::CheckCompletionsBody(body, {asked.choices, false});
        },
    .finish = CompletionsFinish,
    .tells_logprobs = true,
    .tells_usage_details = false,
};

std::string MessagesRequest(const Asked& asked) {
  const std::string stops =
      asked.stop.empty() ? "" : ",\"stop_sequences\":[" + test::JsonQuoted(asked.stop) + "]";
  return R"({"model":"sim/model","max_tokens":100,"messages":[{"role":"user","content":"x"}])" +
         stops + Stream(asked) + "}";
}

std::string MessagesFinish(const Choice& choice) {
  if (choice.finish == Finish::kLength) return "max_tokens";
  if (choice.finish == Finish::kFilter || choice.refused) return "refusal";
  if (!choice.calls.empty()) return "tool_use";
  return choice.stop_sequence.empty() ? "end_turn" : "stop_sequence";
}

const SurfaceRow kMessages = {
    .name = "messages",
    .surface = gateway::MessagesSurface,
    .kind = inference::v1::REQUEST_KIND_CHAT,
    .abilities = {.chat = true, .max_choices = 1},
    .request = MessagesRequest,
    .check_stream = [](std::string_view bytes,
                       const Asked&) { return test::CheckMessagesStream(bytes); },
    .check_body = [](std::string_view body, const Asked&) { return test::CheckMessagesBody(body); },
    .finish = MessagesFinish,
    .blocks = true,
    .arguments_are_objects = true,
    .refusal_is_text = true,
    .tells_stop_sequence = true,
    .always_usage = true,
};

std::string ResponsesRequest(const Asked& asked) {
  return R"({"model":"sim/model","input":"x","top_logprobs":0,)"
         R"("include":["message.output_text.logprobs"])" +
         Stream(asked) + "}";
}

std::string ResponsesFinish(const Choice& choice) {
  if (choice.finish == Finish::kLength) return "max_output_tokens";
  return choice.finish == Finish::kFilter ? "content_filter" : "completed";
}

const SurfaceRow kResponses = {
    .name = "responses",
    .surface = gateway::ResponsesSurface,
    .kind = inference::v1::REQUEST_KIND_CHAT,
    .abilities = {.chat = true, .max_choices = 1},
    .request = ResponsesRequest,
    .check_stream = [](std::string_view bytes,
                       const Asked&) { return test::CheckResponsesStream(bytes); },
    .check_body = [](std::string_view body,
                     const Asked&) { return test::CheckResponsesBody(body); },
    .finish = ResponsesFinish,
    .blocks = true,
    .tells_logprobs = true,
    .always_usage = true,
};

}  // namespace

const std::vector<SurfaceRow>& SurfaceRows() {
  static const std::vector<SurfaceRow> rows = {kChat, kCompletions, kMessages, kResponses};
  return rows;
}

}  // namespace tollgate::fuzz
