#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

struct Query {
  std::string workspace, filter;
  int limit = 100;

  std::string parent() const { return workspace.empty() ? "" : "workspaces/" + workspace; }
};

void AddQuery(CLI::App& command, Query& query) {
  command.add_option("-w,--workspace", query.workspace, "Only this workspace");
  command.add_option("--filter", query.filter,
                     "For example: actor = \"user:ann\" AND time >= \"2026-11-01\"");
}

void ListAudit(Invocation& invocation, const Query& query) {
  const auto stub = invocation.Audit();
  if (!stub) return;
  Table table({{"sequence", "NO."},
               {"at", "AT (UTC)"},
               {"actor", "WHO"},
               {"address", "FROM"},
               {"action", "WHAT"},
               {"workspace_id", "WORKSPACE"},
               {"subject", "SUBJECT"},
               {"detail", "DETAIL"}});
  pb::ListAuditEntriesRequest request;
  request.set_parent(query.parent());
  request.set_filter(query.filter);
  for (int left = query.limit; left > 0;) {
    request.set_page_size(std::min(left, 200));
    pb::ListAuditEntriesResponse page;
    if (!invocation.Call("auth", [&](auto& context) {
          return stub->ListAuditEntries(&context, request, &page);
        })) {
      return;
    }
    for (const pb::AuditEntry& entry : page.audit_entries()) {
      table.Add({Integer(entry.sequence()), Time(entry.time()), Text(entry.actor()),
                 Text(entry.address()), Text(entry.action()),
                 Text(entry.workspace().empty() ? "" : LastPart(entry.workspace())),
                 Text(entry.subject()), Text(entry.detail())});
    }
    left -= page.audit_entries_size();
    if (page.next_page_token().empty()) break;
    request.set_page_token(page.next_page_token());
  }
  invocation.ShowList(table, "events", "No changes yet.");
}

// "billing up to 17 (2 more wait)"
std::string SourcesOf(const pb::VerifyAuditEntriesResponse& found) {
  std::string text;
  for (const pb::AuditSourceVerification& source : found.sources()) {
    text += (text.empty() ? "" : ", ") + source.source() + " up to " +
            std::to_string(source.sequence());
    if (source.waiting() > 0) text += " (" + std::to_string(source.waiting()) + " more wait)";
  }
  for (const std::string& name : found.not_compared()) {
    text += (text.empty() ? "" : ", ") + name + " not compared";
  }
  return text;
}

void AddVerifyAudit(CLI::App& group, Invocation& invocation) {
  CLI::App& verify = *group.add_subcommand(
      "verify", "Let auth verify the log (to do it yourself: tollgate-auth verify-audit)");
  verify.callback([&invocation] {
    const auto stub = invocation.Audit();
    if (!stub) return;
    pb::VerifyAuditEntriesResponse found;
    if (!invocation.Call("auth", [&](auto& context) {
          return stub->VerifyAuditEntries(&context, {}, &found);
        })) {
      return;
    }
    Table table({{"ok", "Whole"},
                 {"sequence", "Up to entry"},
                 {"hash", "Hash"},
                 {"checkpoints", "Checkpoints"},
                 {"sources", "Compared with"},
                 {"problem", "Problem"}});
    table.Add({Bool(found.ok()), Integer(found.sequence()), Text(found.hash()),
               Integer(found.checkpoints()), Text(SourcesOf(found)), Text(found.problem())});
    invocation.ShowRecord(table);
    if (!found.ok()) invocation.set_exit_code(1);
  });
}

void AddExport(CLI::App& group, Invocation& invocation) {
  CLI::App& command =
      *group.add_subcommand("export", "Print all entries, oldest first, as lines of JSON");
  auto query = std::make_shared<Query>();
  AddQuery(command, *query);
  command.callback([&invocation, query] {
    const auto stub = invocation.Audit();
    if (!stub) return;
    pb::ExportAuditEntriesRequest request;
    request.set_parent(query->parent());
    request.set_filter(query->filter);
    (void)invocation.Call("auth", [&](auto& context) {
      const auto reader = stub->ExportAuditEntries(&context, request);
      google::api::HttpBody body;
      while (reader->Read(&body)) std::printf("%s\n", body.data().c_str());
      return reader->Finish();
    });
  });
}

}  // namespace

void AddAuditCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand("audit", "The audit log, newest first");
  auto query = std::make_shared<Query>();
  AddQuery(command, *query);
  command.add_option("--limit", query->limit, "At most this many; default 100")
      ->check(CLI::PositiveNumber);
  command.require_subcommand(0, 1);
  AddVerifyAudit(command, invocation);
  AddExport(command, invocation);
  command.callback([&command, &invocation, query] {
    if (command.get_subcommands().empty()) ListAudit(invocation, *query);
  });
}

}  // namespace tollgate::cli
