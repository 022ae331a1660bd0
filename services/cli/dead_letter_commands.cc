#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "common/base/crypto.h"
#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace v1 = tollgate::admin::v1;

std::vector<Column> Columns() {
  return {{"workspace_id", "WORKSPACE"},
          {"request_id", "REQUEST"},
          {"number", "NO."},
          {"at", "AT (UTC)"},
          {"reason", "REASON"},
          {"outcome", "OUTCOME"},
          {"prompt_tokens", "PROMPT"},
          {"completion_tokens", "COMPLETION"},
          {"engine_id", "ENGINE"},
          {"state", "STATE"},
          {"resolved_at", "RESOLVED"},
          {"actor", "BY"},
          {"note", "NOTE"}};
}

std::vector<Cell> RowOf(const v1::DeadLetter& letter) {
  return {Text(letter.workspace()),
          Text(letter.request()),
          Integer(letter.number()),
          Time(letter.create_time()),
          Text(letter.reason()),
          Text(letter.outcome()),
          Integer(letter.prompt_tokens()),
          Integer(letter.completion_tokens()),
          Text(letter.engine()),
          Text(EnumText(v1::DeadLetterState_Name(letter.state()), "DEAD_LETTER_STATE_")),
          Time(letter.resolve_time()),
          Text(letter.actor()),
          Text(letter.note())};
}

void AddListDeadLetters(CLI::App& group, Invocation& invocation) {
  CLI::App& command = *group.add_subcommand("list", "Refused settlements, newest first");
  auto query = std::make_shared<v1::ListDeadLettersRequest>();
  command.add_option_function<std::string>(
      "-w,--workspace",
      [query](const std::string& id) { query->set_filter("workspace = \"" + id + "\""); },
      "Only this workspace; default: all");
  command.add_flag_callback(
      "--all", [query] { query->set_show_resolved(true); }, "Include resolved ones");
  command
      .add_option_function<int>(
          "--limit", [query](const int& limit) { query->set_page_size(limit); },
          "At most this many; default 50")
      ->check(CLI::Range(1, 200));
  command.add_option_function<std::string>(
      "--page-token", [query](const std::string& token) { query->set_page_token(token); },
      "Continue a list after this page");
  command.callback([&invocation, query] {
    const auto stub = invocation.DeadLetters();
    if (!stub) return;
    v1::ListDeadLettersResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->ListDeadLetters(&context, *query, &response);
        })) {
      return;
    }
    Table table(Columns());
    for (const v1::DeadLetter& letter : response.dead_letters()) table.Add(RowOf(letter));
    invocation.ShowList(table, "dead_letters", "No dead letters.");
    if (!response.next_page_token().empty() && !invocation.options().json) {
      std::printf("More: --page-token %s\n", response.next_page_token().c_str());
    }
  });
}

// Retry and write-off have the same request.
template <typename Request>
void AddResolve(CLI::App& group, Invocation& invocation, const char* name, const char* help,
                grpc::Status (v1::DeadLetterService::Stub::*call)(grpc::ClientContext*,
                                                                  const Request&,
                                                                  v1::DeadLetter*)) {
  struct Words {
    std::string workspace, request, reason;
    int number = 1;
  };
  CLI::App& command = *group.add_subcommand(name, help);
  auto words = std::make_shared<Words>();
  command.add_option("-w,--workspace", words->workspace,
                     "Workspace; leave it out where `deadletter list` shows none");
  command.add_option("request", words->request, "Request id, as `deadletter list` prints it")
      ->required();
  command
      .add_option("number", words->number, "Number of the dead letter of this request; default 1")
      ->check(CLI::PositiveNumber);
  command.add_option("--reason", words->reason, "Reason, for the ledger")->required();
  command.callback([&invocation, words, call] {
    if (const auto id = HexDecode(words->request); !id || id->size() != 16) {
      invocation.ReportError("bad_option", "\"" + words->request + "\" is not a request id");
      return;
    }
    const auto stub = invocation.DeadLetters();
    if (!stub) return;
    Request request;
    request.set_name("deadLetters/" + (words->workspace.empty() ? "_" : words->workspace) + "." +
                     words->request + "." + std::to_string(words->number));
    request.set_reason(words->reason);
    request.set_request_id(invocation.RequestId());
    v1::DeadLetter letter;
    if (!invocation.Call("billing", [&](auto& context) {
          return (stub.get()->*call)(&context, request, &letter);
        })) {
      return;
    }
    Table table({{"state", "State"}, {"charged_usd", "Charged for the request"}});
    table.Add({Text(EnumText(v1::DeadLetterState_Name(letter.state()), "DEAD_LETTER_STATE_")),
               Usd(letter.charged_usd())});
    invocation.ShowRecord(table);
  });
}

}  // namespace

void AddDeadLetterCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& group =
      *app.add_subcommand("deadletter", "Settlements that the ledger refused: list and resolve");
  group.require_subcommand(1);
  AddListDeadLetters(group, invocation);
  AddResolve<v1::RetryDeadLetterRequest>(
      group, invocation, "retry", "Apply the settlement again; it stays open if refused again",
      &v1::DeadLetterService::Stub::RetryDeadLetter);
  AddResolve<v1::WriteOffDeadLetterRequest>(group, invocation, "writeoff",
                                            "Give the settlement up: nothing is charged",
                                            &v1::DeadLetterService::Stub::WriteOffDeadLetter);
}

}  // namespace tollgate::cli
