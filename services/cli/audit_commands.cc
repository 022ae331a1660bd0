#include <cstdio>
#include <string>
#include <vector>

#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "tollgate/admin/v1/audit.grpc.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

// "billing up to 17 (2 more wait)"
Cell SourcesCell(const google::protobuf::Message& message) {
  const auto& found = static_cast<const pb::VerifyAuditEntriesResponse&>(message);
  std::string text;
  for (const pb::AuditSourceVerification& source : found.sources()) {
    text += (text.empty() ? "" : ", ") + source.source() + " up to " +
            std::to_string(source.sequence());
    if (source.waiting() > 0) text += " (" + std::to_string(source.waiting()) + " more wait)";
  }
  for (const std::string& name : found.not_compared()) {
    text += (text.empty() ? "" : ", ") + name + " not compared";
  }
  return Text(text);
}

void Export(Invocation& invocation, const Arguments& arguments) {
  const auto channel = invocation.ChannelTo("auth");
  if (!channel) return;
  pb::ExportAuditEntriesRequest request;
  if (arguments.Has("workspace")) request.set_parent("workspaces/" + arguments.Get("workspace"));
  request.set_filter(arguments.Get("filter"));
  grpc::ClientContext context;
  invocation.Prepare(context);
  const auto reader = pb::AuditService::NewStub(channel)->ExportAuditEntries(&context, request);
  google::api::HttpBody body;
  while (reader->Read(&body)) std::printf("%s\n", body.data().c_str());
  const grpc::Status status = reader->Finish();
  if (!status.ok()) invocation.ReportFailure("auth", status);
}

}  // namespace

std::vector<Command> AuditCommands() {
  const Flag workspace =
      Flag("-w,--workspace", "Only this workspace", "parent").Into("workspaces/{}");
  const Flag filter("--filter", "For example: actor = \"user:ann\" AND time >= \"2026-11-01\"",
                    "filter");
  return {
      Command("audit", "The audit log, newest first", "AuditService.ListAuditEntries",
              {workspace, filter, LimitFlag(100)})
          .Lists("audit_entries", "No changes yet.",
                 "sequence NO. | at=time AT (UTC) | actor WHO | address FROM | action WHAT | "
                 "workspace_id=workspace.id WORKSPACE | subject SUBJECT | detail DETAIL",
                 "events"),
      Command("audit verify",
              "Let auth verify the log (to do it yourself: tollgate-auth verify-audit)",
              "AuditService.VerifyAuditEntries")
          .Shows("ok Whole | sequence Up to entry | hash Hash | checkpoints Checkpoints | "
                 "sources Compared with | problem Problem")
          .WithCell("sources", SourcesCell)
          .FailsWithout("ok"),
      Command("audit export", "Print all entries, oldest first, as lines of JSON", Export,
              {workspace, filter}),
  };
}

}  // namespace tollgate::cli
