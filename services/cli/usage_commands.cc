#include <string>
#include <vector>

#include "common/base/utc_text.h"
#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "tollgate/admin/v1/usage.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

std::optional<int64_t> DateOrTime(const std::string& text) { return ParseUtc(text); }

void ShowUsage(Invocation& invocation, const Arguments&,
               const google::protobuf::Message& response) {
  const auto& report = static_cast<const pb::QueryUsageResponse&>(response);
  Table table({{"start", "FROM (UTC)"},
               {"model", "MODEL"},
               {"key", "KEY"},
               {"requests", "REQUESTS"},
               {"free_requests", "FREE"},
               {"prompt_tokens", "PROMPT"},
               {"cached_tokens", "CACHED"},
               {"cache_write_tokens", "CACHE WRITE"},
               {"completion_tokens", "COMPLETION"},
               {"reasoning_tokens", "REASONING"},
               {"cost_usd", "COST"}});
  const auto add = [&table](const pb::UsageRow& row, Cell start) {
    const auto name = [&row](const std::string& text) {
      return row.other() ? Text("other") : text.empty() ? None("-") : Text(text);
    };
    const pb::TokenCounts& tokens = row.tokens();
    table.Add({std::move(start), name(row.model()), name(row.key()), Integer(row.requests()),
               Integer(row.free_requests()), Integer(tokens.prompt_tokens()),
               Integer(tokens.cached_tokens()), Integer(tokens.cache_write_tokens()),
               Integer(tokens.completion_tokens()), Integer(tokens.reasoning_tokens()),
               Usd(row.cost_usd())});
  };
  for (const pb::UsageRow& row : report.rows()) add(row, Time(row.start_time()));
  if (report.rows_size() > 0) add(report.totals(), None("total"));
  invocation.ShowList(table, "usage", "No requests in this period.");
}

Cell EntriesCell(const google::protobuf::Message& message) {
  std::vector<std::string> entries;
  for (const pb::ReceiptEntry& entry : static_cast<const pb::Receipt&>(message).entries()) {
    entries.push_back(LastPart(entry.transaction()) + " " + entry.kind() + " " +
                      entry.amount_usd() + " " + entry.debit_account() + " > " +
                      entry.credit_account());
  }
  return List(entries, "none");
}

constexpr char kReceipt[] =
    "request_id=name.id Request | workspace=name.workspace Workspace | "
    "x_request_id=client_request_id x-request-id | matches Requests with this id | key Key | "
    "model Model | surface Surface | streamed Streamed | engine Engine | state State | "
    "outcome Outcome | cut_by_credit Cut by credit | estimated Tokens estimated | "
    "prompt_tokens=tokens.prompt_tokens Prompt tokens | "
    "cached_tokens=tokens.cached_tokens   from the cache | "
    "cache_write_tokens=tokens.cache_write_tokens   written to the cache | "
    "completion_tokens=tokens.completion_tokens Completion tokens | "
    "reasoning_tokens=tokens.reasoning_tokens   reasoning | price_version Price version | "
    "input_usd_per_million=input_usd_per_million.exact Input, USD per million | "
    "output_usd_per_million=output_usd_per_million.exact Output, USD per million | "
    "exact_cost_usd=exact_cost_usd.exact Exact cost | charged_usd Charged | "
    "charged_granted_usd   from granted credit | overrun_usd Borne by the operator | "
    "first_hold_usd Held at first | hold_usd Held at last | "
    "admitted_at=create_time Admitted (UTC) | closed_at=close_time?running Closed (UTC) | "
    "first_token_us First token (microseconds) | entries Entries";

std::vector<Flag> UsageFlags() {
  constexpr char kNoTime[] =
      "\"{}\" is not a date or time such as 2026-11-01 or 2026-11-01T12:00:00Z";
  return {
      Flag("workspace,-w,--workspace", "Workspace", "parent").Into("workspaces/{}").Required(),
      Flag("--since", "Date or RFC 3339 time; default: 7 days ago", "start_time")
          .As(DateOrTime, kNoTime),
      Flag("--before", "Date or RFC 3339 time; default: now", "end_time").As(DateOrTime, kNoTime),
      Flag("--interval", "quarter-hour, hour, day or none; default: hour up to 7 days, else day",
           "interval")
          .OneOf({"quarter-hour", "hour", "day", "none"}),
      Flag("--time-zone", "Time zone of days and hours, for example Europe/Berlin; default UTC",
           "time_zone"),
      Flag("--group-by", "model or key; repeatable", "group_by").OneOf({"model", "key"}),
      Flag("--top", "Groups with the highest cost; default 5", "top").Between(1, 100),
      Flag("--key", "Only this key").Filter("key ="),
      Flag("--model", "Only this model").Filter("model =")};
}

}  // namespace

std::vector<Command> UsageCommands() {
  return {
      Command("transactions",
              "Ledger entries of a workspace with the balance after each, newest first",
              "LedgerService.ListTransactions",
              {PositionalParentFlag(),
               Flag("--kind", "Only this kind, for example topup").Filter("kind ="),
               Flag("--since", "From this date or RFC 3339 time on").Filter("create_time >="),
               Flag("--before", "Before this date or RFC 3339 time").Filter("create_time <"),
               LimitFlag(50)})
          .Lists("transactions", "No entries.",
                 "sequence=name.id NO. | at=create_time AT (UTC) | kind KIND | "
                 "amount_usd AMOUNT | change_usd CHANGE | balance_usd BALANCE | "
                 "debit=debit_account DEBIT | credit=credit_account CREDIT | request REQUEST | "
                 "memo MEMO"),
      Command("usage", "Requests, tokens and cost of a workspace", "UsageService.QueryUsage",
              UsageFlags())
          .Then(ShowUsage),
      Command("receipt", "What a request was charged for, and the entries that charged it",
              "UsageService.GetRequest",
              {Flag("request",
                    "Request id, the x-request-id of the response, or the id of the answer "
                    "(chatcmpl-…, msg_…, resp_…)")
                   .Required(),
               Flag("-w,--workspace", "Workspace; needed for an x-request-id that the caller chose")
                   .Otherwise("-")})
          .Sets("name", "workspaces/{workspace}/requests/{request}")
          .Shows(kReceipt)
          .WithCell("entries", EntriesCell),
  };
}

}  // namespace tollgate::cli
