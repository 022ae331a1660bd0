#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/local_commands.h"
#include "tollgate/admin/v1/statements.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

// Writes one document from billing to this file, or CSV to standard output if the file name is
// empty.
bool WriteDocument(Invocation& invocation, const Arguments& arguments, pb::StatementFormat format,
                   const std::string& file) {
  pb::DownloadStatementRequest request;
  request.set_name(arguments.Expand("workspaces/{workspace}/statements/{month}"));
  request.set_format(format);
  google::api::HttpBody body;
  if (!invocation.Call("StatementService.DownloadStatement", request, body)) return false;
  if (file.empty()) {
    std::fputs(body.data().c_str(), stdout);
    return true;
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << body.data();
  if (!out.flush()) {
    invocation.ReportError("cannot_write", "cannot write " + file);
    return false;
  }
  return true;
}

void WriteStatement(Invocation& invocation, const Arguments& arguments) {
  for (const char* needed : {"month", "workspace"}) {
    // Not marked as required for the parser, since `statement list` is without a month.
    if (arguments.Get(needed).empty()) {
      return invocation.ReportError("bad_option", std::string(needed) + " is required");
    }
  }
  const std::string csv = arguments.Get("csv"), pdf = arguments.Get("pdf");
  if (arguments.Has("database") || arguments.Has("config")) {
    auto local = ForBillingBinary(arguments, {"workspace", "database", "config", "csv", "pdf"});
    local.insert(local.begin(), arguments.Get("month"));
    return RunBillingBinary(invocation, "statement", local);
  }
  ::umask(077);  // only this user may read the files it writes
  if (!pdf.empty() && !WriteDocument(invocation, arguments, pb::STATEMENT_FORMAT_PDF, pdf)) return;
  if (!csv.empty() || pdf.empty())
    WriteDocument(invocation, arguments, pb::STATEMENT_FORMAT_CSV, csv);
}

}  // namespace

std::vector<Command> StatementCommands() {
  return {
      Command(
          "statement",
          "The statement of a workspace and month, as CSV to standard output or to files; or their "
          "list",
          WriteStatement,
          {Flag("month", "YYYY-MM, in UTC"), Flag("-w,--workspace", "Workspace"),
           Flag("--csv", "Write CSV to this file"), Flag("--pdf", "Write PDF to this file"),
           Flag("--database",
                "Read this database (sqlite:/path or postgresql://…) in this process instead of "
                "asking billing"),
           Flag("--config", "The same, with the database of this file").Excludes("--database")}),
      Command("statement list",
              "Balances and totals of each month whose totals are in the database, newest first",
              "StatementService.ListStatements",
              {ParentFlag(),
               Flag("--limit", "At most this many; default 50", "page_size").Between(1, 200),
               Flag("--page-token", "Continue a list after this page", "page_token")})
          .Lists("statements", "No statements.",
                 "month=name.id MONTH | number NUMBER | opening_usd OPENING | added_usd ADDED | "
                 "removed_usd REMOVED | used_usd USED | closing_usd CLOSING | "
                 "closing_receivable_usd OWED | "
                 "preliminary_at=preliminary_time PRELIMINARY AT (UTC)"),
  };
}

}  // namespace tollgate::cli
