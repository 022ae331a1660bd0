#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/base/utc_text.h"
#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

// Appends a term to a filter.
void AddTerm(std::string& filter, const std::string& field, const std::string& op,
             const std::string& value) {
  if (value.empty()) return;
  if (!filter.empty()) filter += " AND ";
  filter += field + " " + op + " \"";
  for (const char c : value) {
    if (c == '"' || c == '\\') filter += '\\';
    filter += c;
  }
  filter += '"';
}

void AddTransactions(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand(
      "transactions", "Ledger entries of a workspace with the balance after each, newest first");
  struct Options {
    std::string workspace, kind, since, before;
    int limit = 50;
  };
  auto options = std::make_shared<Options>();
  command.add_option("workspace,-w,--workspace", options->workspace, "Workspace")->required();
  command.add_option("--kind", options->kind, "Only this kind, for example topup");
  command.add_option("--since", options->since, "From this date or RFC 3339 time on");
  command.add_option("--before", options->before, "Before this date or RFC 3339 time");
  command.add_option("--limit", options->limit, "At most this many; default 50")
      ->check(CLI::PositiveNumber);
  command.callback([&invocation, options] {
    const auto stub = invocation.Books();
    if (!stub) return;
    pb::ListTransactionsRequest request;
    request.set_parent("workspaces/" + options->workspace);
    std::string filter;
    AddTerm(filter, "kind", "=", options->kind);
    AddTerm(filter, "create_time", ">=", options->since);
    AddTerm(filter, "create_time", "<", options->before);
    request.set_filter(filter);
    Table table({{"sequence", "NO."},
                 {"at", "AT (UTC)"},
                 {"kind", "KIND"},
                 {"amount_usd", "AMOUNT"},
                 {"change_usd", "CHANGE"},
                 {"balance_usd", "BALANCE"},
                 {"debit", "DEBIT"},
                 {"credit", "CREDIT"},
                 {"request", "REQUEST"},
                 {"memo", "MEMO"}});
    for (int left = options->limit; left > 0;) {
      request.set_page_size(std::min(left, 200));
      pb::ListTransactionsResponse page;
      if (!invocation.Call("billing", [&](auto& context) {
            return stub->ListTransactions(&context, request, &page);
          })) {
        return;
      }
      for (const pb::Transaction& one : page.transactions()) {
        table.Add({Text(LastPart(one.name())), Time(one.create_time()), Text(one.kind()),
                   Usd(one.amount_usd()), Usd(one.change_usd()), Usd(one.balance_usd()),
                   Text(one.debit_account()), Text(one.credit_account()), Text(one.request()),
                   Text(one.memo())});
      }
      left -= page.transactions_size();
      if (page.next_page_token().empty()) break;
      request.set_page_token(page.next_page_token());
    }
    invocation.ShowList(table, "transactions", "No entries.");
  });
}

struct UsageOptions {
  std::string workspace, since, before, interval, time_zone, key, model;
  std::vector<std::string> group_by;
  int top = 0;
};

// Parses the time; reports an invalid one and returns false.
bool SetUsageTime(Invocation& invocation, const std::string& text,
                  google::protobuf::Timestamp* (pb::QueryUsageRequest::*field)(),
                  pb::QueryUsageRequest& request) {
  if (text.empty()) return true;
  const auto us = ParseUtc(text);
  if (!us) {
    invocation.ReportError("bad_option", "\"" + text +
                                             "\" is not a date or time such as 2026-11-01 or "
                                             "2026-11-01T12:00:00Z");
    return false;
  }
  google::protobuf::Timestamp& time = *(request.*field)();
  time.set_seconds(*us / 1'000'000);
  time.set_nanos(static_cast<int32_t>(*us % 1'000'000 * 1000));
  return true;
}

void ShowUsage(Invocation& invocation, const UsageOptions& options) {
  pb::QueryUsageRequest request;
  request.set_parent("workspaces/" + options.workspace);
  if (!SetUsageTime(invocation, options.since, &pb::QueryUsageRequest::mutable_start_time,
                    request) ||
      !SetUsageTime(invocation, options.before, &pb::QueryUsageRequest::mutable_end_time,
                    request)) {
    return;
  }
  request.set_interval(options.interval == "quarter-hour" ? pb::USAGE_INTERVAL_QUARTER_HOUR
                       : options.interval == "hour"       ? pb::USAGE_INTERVAL_HOUR
                       : options.interval == "day"        ? pb::USAGE_INTERVAL_DAY
                       : options.interval == "none"       ? pb::USAGE_INTERVAL_NONE
                                                          : pb::USAGE_INTERVAL_UNSPECIFIED);
  request.set_time_zone(options.time_zone);
  for (const std::string& group : options.group_by) {
    request.add_group_by(group == "key" ? pb::USAGE_GROUP_KEY : pb::USAGE_GROUP_MODEL);
  }
  request.set_top(options.top);
  std::string filter;
  AddTerm(filter, "key", "=", options.key);
  AddTerm(filter, "model", "=", options.model);
  request.set_filter(filter);
  const auto stub = invocation.Usage();
  if (!stub) return;
  pb::QueryUsageResponse report;
  if (!invocation.Call(
          "billing", [&](auto& context) { return stub->QueryUsage(&context, request, &report); })) {
    return;
  }
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

void AddUsage(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand("usage", "Requests, tokens and cost of a workspace");
  auto options = std::make_shared<UsageOptions>();
  command.add_option("workspace,-w,--workspace", options->workspace, "Workspace")->required();
  command.add_option("--since", options->since, "Date or RFC 3339 time; default: 7 days ago");
  command.add_option("--before", options->before, "Date or RFC 3339 time; default: now");
  command
      .add_option("--interval", options->interval,
                  "quarter-hour, hour, day or none; default: hour up to 7 days, else day")
      ->check(CLI::IsMember({"quarter-hour", "hour", "day", "none"}));
  command.add_option("--time-zone", options->time_zone,
                     "Time zone of days and hours, for example Europe/Berlin; default UTC");
  command.add_option("--group-by", options->group_by, "model or key; repeatable")
      ->check(CLI::IsMember({"model", "key"}));
  command.add_option("--top", options->top, "Groups with the highest cost; default 5")
      ->check(CLI::Range(1, 100));
  command.add_option("--key", options->key, "Only this key");
  command.add_option("--model", options->model, "Only this model");
  command.callback([&invocation, options] { ShowUsage(invocation, *options); });
}

Cell PicoUsd(const std::string& decimal) { return {Text(decimal).json, "$" + decimal, true}; }

void ShowReceipt(Invocation& invocation, const pb::Receipt& receipt) {
  Table table({{"request_id", "Request"},
               {"workspace", "Workspace"},
               {"x_request_id", "x-request-id"},
               {"matches", "Requests with this id"},
               {"key", "Key"},
               {"model", "Model"},
               {"surface", "Surface"},
               {"streamed", "Streamed"},
               {"engine", "Engine"},
               {"state", "State"},
               {"outcome", "Outcome"},
               {"cut_by_credit", "Cut by credit"},
               {"estimated", "Tokens estimated"},
               {"prompt_tokens", "Prompt tokens"},
               {"cached_tokens", "  from the cache"},
               {"cache_write_tokens", "  written to the cache"},
               {"completion_tokens", "Completion tokens"},
               {"reasoning_tokens", "  reasoning"},
               {"price_version", "Price version"},
               {"input_usd_per_million", "Input, USD per million"},
               {"output_usd_per_million", "Output, USD per million"},
               {"exact_cost_usd", "Exact cost"},
               {"charged_usd", "Charged"},
               {"charged_granted_usd", "  from granted credit"},
               {"overrun_usd", "Borne by the operator"},
               {"first_hold_usd", "Held at first"},
               {"hold_usd", "Held at last"},
               {"admitted_at", "Admitted (UTC)"},
               {"closed_at", "Closed (UTC)"},
               {"first_token_us", "First token (microseconds)"},
               {"entries", "Entries"}});
  const pb::TokenCounts& tokens = receipt.tokens();
  std::vector<std::string> entries;
  for (const pb::ReceiptEntry& entry : receipt.entries()) {
    entries.push_back(LastPart(entry.transaction()) + " " + entry.kind() + " " +
                      entry.amount_usd() + " " + entry.debit_account() + " > " +
                      entry.credit_account());
  }
  table.Add({Text(LastPart(receipt.name())),
             Text(WorkspaceOf(receipt.name())),
             Text(receipt.client_request_id()),
             Integer(receipt.matches()),
             Text(receipt.key()),
             Text(receipt.model()),
             Text(receipt.surface()),
             Bool(receipt.streamed()),
             Text(receipt.engine()),
             Text(receipt.state()),
             Text(receipt.outcome()),
             Bool(receipt.cut_by_credit()),
             Bool(receipt.estimated()),
             Integer(tokens.prompt_tokens()),
             Integer(tokens.cached_tokens()),
             Integer(tokens.cache_write_tokens()),
             Integer(tokens.completion_tokens()),
             Integer(tokens.reasoning_tokens()),
             Integer(receipt.price_version()),
             PicoUsd(receipt.input_usd_per_million()),
             PicoUsd(receipt.output_usd_per_million()),
             PicoUsd(receipt.exact_cost_usd()),
             Usd(receipt.charged_usd()),
             Usd(receipt.charged_granted_usd()),
             Usd(receipt.overrun_usd()),
             Usd(receipt.first_hold_usd()),
             Usd(receipt.hold_usd()),
             Time(receipt.create_time()),
             receipt.has_close_time() ? Time(receipt.close_time()) : None("running"),
             Integer(receipt.first_token_us()),
             List(entries, "none")});
  invocation.ShowRecord(table);
}

void AddReceipt(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand(
      "receipt", "What a request was charged for, and the entries that charged it");
  auto id = std::make_shared<std::string>();
  auto workspace = std::make_shared<std::string>();
  command
      .add_option("request", *id,
                  "Request id, the x-request-id of the response, or the id of the answer "
                  "(chatcmpl-…, msg_…, resp_…)")
      ->required();
  command.add_option("-w,--workspace", *workspace,
                     "Workspace; needed for an x-request-id that the caller chose");
  command.callback([&invocation, id, workspace] {
    const auto stub = invocation.Usage();
    if (!stub) return;
    pb::GetRequestRequest request;
    request.set_name("workspaces/" + (workspace->empty() ? "-" : *workspace) + "/requests/" + *id);
    pb::Receipt receipt;
    if (invocation.Call("billing", [&](auto& context) {
          return stub->GetRequest(&context, request, &receipt);
        })) {
      ShowReceipt(invocation, receipt);
    }
  });
}

}  // namespace

void AddUsageCommands(CLI::App& app, Invocation& invocation) {
  AddTransactions(app, invocation);
  AddUsage(app, invocation);
  AddReceipt(app, invocation);
}

}  // namespace tollgate::cli
