#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "common/base/crypto.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace v1 = tollgate::billing::v1;

// "DENY_REASON_ID_REUSE" as "id_reuse".
std::string Lower(std::string name, const std::string& prefix) {
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

void AddList(CLI::App& group, Invocation& invocation) {
  CLI::App& command = *group.add_subcommand("list", "Refused settlements, newest first");
  auto query = std::make_shared<v1::ListDeadLettersRequest>();
  command.add_option_function<std::string>(
      "-w,--workspace", [query](const std::string& id) { query->set_workspace_id(id); },
      "Only this workspace; default: all");
  command.add_flag_callback(
      "--all", [query] { query->set_resolved(true); }, "Also those that are resolved");
  command
      .add_option_function<int>(
          "--limit", [query](const int& limit) { query->set_page_size(limit); },
          "At most this many; default 100")
      ->check(CLI::PositiveNumber);
  command.add_option_function<std::string>(
      "--page-token", [query](const std::string& token) { query->set_page_token(token); },
      "Goes on where a list ended");
  command.callback([&invocation, query] {
    const auto stub = invocation.Billing();
    if (!stub) return;
    v1::ListDeadLettersResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->ListDeadLetters(&context, *query, &response);
        })) {
      return;
    }
    Table table({{"workspace_id", "WORKSPACE"},
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
                 {"note", "NOTE"}});
    for (const v1::DeadLetter& letter : response.dead_letters()) {
      const v1::SettleOp& settle = letter.settle();
      table.Add({Text(letter.workspace_id()), Text(HexEncode(letter.request_id())),
                 Integer(letter.number()), Time(letter.at_us(), "-"),
                 Text(Lower(v1::DenyReason_Name(letter.reason()), "DENY_REASON_")),
                 Text(Lower(v1::Outcome_Name(settle.outcome()), "OUTCOME_")),
                 Integer(settle.usage().prompt_tokens()),
                 Integer(settle.usage().completion_tokens()), Text(settle.engine_id()),
                 Text(Lower(v1::DeadLetterState_Name(letter.state()), "DEAD_LETTER_STATE_")),
                 Time(letter.resolved_us(), "-"), Text(letter.actor()), Text(letter.note())});
    }
    invocation.ShowList(table, "dead_letters", "No dead letters.");
    if (!response.next_page_token().empty() && !invocation.options().json) {
      std::printf("More: --page-token %s\n", response.next_page_token().c_str());
    }
  });
}

// Retry and write-off have the same request. call: the RPC; done: what to print.
template <typename Request, typename Response>
void AddResolve(CLI::App& group, Invocation& invocation, const char* name, const char* help,
                grpc::Status (v1::BillingAdminService::Stub::*call)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                Table (*done)(const Response&)) {
  CLI::App& command = *group.add_subcommand(name, help);
  auto request = std::make_shared<Request>();
  auto hex = std::make_shared<std::string>();
  request->set_number(1);
  command.add_option_function<std::string>(
      "-w,--workspace", [request](const std::string& id) { request->set_workspace_id(id); },
      "Workspace; leave it out where `deadletter list` shows none");
  command.add_option("request", *hex, "Request id, as `deadletter list` prints it")->required();
  command
      .add_option_function<int>(
          "number", [request](const int& number) { request->set_number(number); },
          "Number of the dead letter of this request; default 1")
      ->check(CLI::PositiveNumber);
  command
      .add_option_function<std::string>(
          "--reason", [request](const std::string& reason) { request->set_reason(reason); },
          "Reason, for the ledger")
      ->required();
  command.callback([&invocation, request, hex, call, done] {
    const auto id = HexDecode(*hex);
    if (!id || id->size() != 16) {
      invocation.ReportError("bad_option", "\"" + *hex + "\" is not a request id");
      return;
    }
    const auto stub = invocation.Billing();
    if (!stub) return;
    request->set_request_id(*id);
    request->set_actor(invocation.options().actor);
    Response response;
    if (invocation.Call("billing", [&](auto& context) {
          return (stub.get()->*call)(&context, *request, &response);
        })) {
      invocation.ShowRecord(done(response));
    }
  });
}

}  // namespace

void AddDeadLetterCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& group =
      *app.add_subcommand("deadletter", "Settlements that the ledger refused: list and resolve");
  group.require_subcommand(1);
  AddList(group, invocation);
  AddResolve<v1::RetryDeadLetterRequest, v1::RetryDeadLetterResponse>(
      group, invocation, "retry", "Apply the settlement again; it stays open if refused again",
      &v1::BillingAdminService::Stub::RetryDeadLetter,
      [](const v1::RetryDeadLetterResponse& response) {
        Table table({{"state", "State"}, {"charged_usd", "Charged for the request"}});
        table.Add({Text("retried"), Usd(response.charged_nano_usd())});
        return table;
      });
  AddResolve<v1::WriteOffDeadLetterRequest, v1::WriteOffDeadLetterResponse>(
      group, invocation, "writeoff", "Give the settlement up: nothing is charged",
      &v1::BillingAdminService::Stub::WriteOffDeadLetter,
      [](const v1::WriteOffDeadLetterResponse&) {
        Table table({{"state", "State"}});
        table.Add({Text("written_off")});
        return table;
      });
}

}  // namespace tollgate::cli
