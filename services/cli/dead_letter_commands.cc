#include <string>
#include <vector>

#include "common/base/crypto.h"
#include "services/cli/commands.h"

namespace tollgate::cli {
namespace {

std::optional<int64_t> RequestDigits(const std::string& text) {
  const auto id = HexDecode(text);
  return id && id->size() == 16 ? std::optional<int64_t>(0) : std::nullopt;
}

Command ResolveDeadLetter(const char* words, const char* help, const char* method) {
  return Command(
             words, help, method,
             {Flag("-w,--workspace", "Workspace; leave it out where `deadletter list` shows none")
                  .Otherwise("_"),
              Flag("request", "Request id, as `deadletter list` prints it")
                  .Required()
                  .As(RequestDigits, "\"{}\" is not a request id"),
              Flag("number", "Number of the dead letter of this request; default 1")
                  .Positive()
                  .Otherwise("1"),
              Flag("--reason", "Reason, for the ledger", "reason").Required()})
      .Sets("name", "deadLetters/{workspace}.{request}.{number}")
      .Shows("state State | charged_usd Charged for the request | adjustment Adjustment");
}

}  // namespace

std::vector<Command> DeadLetterCommands() {
  return {
      Command("deadletter", "Settlements that the ledger refused: list and resolve"),
      Command("deadletter list", "Refused settlements, newest first",
              "DeadLetterService.ListDeadLetters",
              {Flag("-w,--workspace", "Only this workspace; default: all").Filter("workspace ="),
               Flag("--all", "Include resolved ones", "show_resolved"),
               Flag("--limit", "At most this many; default 50", "page_size").Between(1, 200),
               Flag("--page-token", "Continue a list after this page", "page_token")})
          .Lists("dead_letters", "No dead letters.",
                 "workspace_id=workspace WORKSPACE | request_id=request REQUEST | number NO. | "
                 "at=create_time AT (UTC) | reason REASON | outcome OUTCOME | "
                 "prompt_tokens PROMPT | completion_tokens COMPLETION | engine_id=engine ENGINE | "
                 "state STATE | adjustment ADJUSTMENT | resolved_at=resolve_time RESOLVED | actor "
                 "BY | note NOTE"),
      ResolveDeadLetter("deadletter retry",
                        "Apply the settlement again; what came too late becomes an adjustment",
                        "DeadLetterService.RetryDeadLetter"),
      ResolveDeadLetter("deadletter writeoff", "Give the settlement up: nothing is charged",
                        "DeadLetterService.WriteOffDeadLetter"),
  };
}

}  // namespace tollgate::cli
