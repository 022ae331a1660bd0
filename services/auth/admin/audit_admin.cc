#include "services/auth/admin/audit_admin.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "common/admin/filter.h"
#include "common/admin/values.h"
#include "common/base/crypto.h"
#include "common/base/try.h"
#include "common/base/utc_text.h"
#include "common/json/writer.h"

namespace tollgate::auth {

namespace pb = tollgate::admin::v1;

using sql::SqlResult;

namespace {

constexpr int kExportLines = 500;

// "workspaces/acme" or "".
AdminResult<std::string> WorkspaceOf(const std::string& parent) {
  if (parent.empty()) return std::string();
  TRY(auto parts, admin::NameParts("workspaces/*", parent, "parent"));
  return parts.front();
}

AdminResult<AuditQuery> QueryOf(const std::string& parent, const std::string& filter) {
  AuditQuery query;
  TRY(auto workspace, WorkspaceOf(parent));
  query.workspace = std::move(workspace);
  static constexpr std::string_view kTexts[] = {"actor", "action", "subject"};
  static constexpr std::string_view kTimes[] = {"time"};
  TRY(auto terms, admin::ParseFilter(filter, kTexts, kTimes));
  for (const admin::FilterTerm& term : terms) {
    if (term.field == "actor") query.actor = term.value;
    if (term.field == "action") query.action = term.value;
    if (term.field == "subject") query.subject = term.value;
    if (term.field != "time") continue;
    TRY(auto us, admin::FilterTime(term));
    (term.op == admin::FilterTerm::Op::kAtLeast ? query.from_us : query.before_us) = us;
  }
  return query;
}

pb::AuditEntry ToAdmin(const AuditRecord& record, const std::string& parent) {
  pb::AuditEntry to;
  to.set_name((parent.empty() ? "" : parent + "/") + "auditEntries/" +
              std::to_string(record.sequence));
  to.set_sequence(record.sequence);
  *to.mutable_time() = admin::ToTimestamp(record.at_us);
  to.set_actor(record.actor);
  to.set_address(record.address);
  to.set_action(record.action);
  if (!record.workspace_id.empty()) to.set_workspace("workspaces/" + record.workspace_id);
  to.set_subject(record.subject);
  to.set_detail(record.detail);
  to.set_hash(HexEncode(record.hash));
  to.set_request_id(record.request_id);
  to.set_source(record.source);
  to.set_source_sequence(record.source_sequence);
  return to;
}

std::string Line(const AuditRecord& record) {
  return json::Writer()
      .Number("sequence", record.sequence)
      .Text("time", UtcText(record.at_us, UtcPrecision::kMicroseconds))
      .Text("actor", record.actor)
      .Text("address", record.address)
      .Text("action", record.action)
      .Text("workspace", record.workspace_id)
      .Text("subject", record.subject)
      .Text("detail", record.detail)
      .Text("request_id", record.request_id)
      .Text("source", record.source)
      .Number("source_sequence", record.source_sequence)
      .Text("source_hash", HexEncode(record.source_hash))
      .Number("format", record.format)
      .Text("hash", HexEncode(record.hash))
      .Done();
}

}  // namespace

AdminResult<pb::AuditEntry> AuditAdmin::Get(const pb::GetAuditEntryRequest& request) {
  const size_t slash = request.name().rfind("auditEntries/");
  const std::string parent =
      slash == std::string::npos || slash == 0 ? "" : request.name().substr(0, slash - 1);
  TRY(auto parts,
      admin::NameParts(parent.empty() ? "auditEntries/*" : "workspaces/*/auditEntries/*",
                       request.name(), "name"));
  const std::string& number = parts.back();
  int64_t sequence = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), sequence);
  if (error != std::errc() || end != number.data() + number.size() || sequence < 1 ||
      number.front() == '0') {
    return admin::InvalidField("name", "the last part of an entry's name is its number");
  }
  AuditQuery query;
  query.after = sequence - 1;
  query.oldest_first = true;
  query.limit = 1;
  std::optional<AuditRecord> found;
  const auto done = store_.Read([&](sql::Connection& sql) {
    found.reset();
    return ReadAuditLog(sql, query, [&](AuditRecord record) { found = std::move(record); });
  });
  if (!done) return Fail{admin::FromError(done.error())};
  const bool fits = found && found->sequence == sequence &&
                    (parent.empty() || found->workspace_id == parts.front());
  if (!fits) return admin::NotFound("there is no audit entry " + request.name());
  return ToAdmin(*found, parent);
}

AdminResult<pb::ListAuditEntriesResponse> AuditAdmin::List(
    const Caller& caller, const pb::ListAuditEntriesRequest& request) {
  TRY(auto page, admin::PageOfList(request, caller));
  TRY(auto query, QueryOf(request.parent(), request.filter()));
  query.limit = page.size + 1;
  if (!page.position.empty()) query.after = std::strtoll(page.position.c_str(), nullptr, 10);
  std::vector<AuditRecord> records;
  const auto done = store_.Read([&](sql::Connection& sql) {
    records.clear();
    return ReadAuditLog(sql, query,
                        [&](AuditRecord record) { records.push_back(std::move(record)); });
  });
  if (!done) return Fail{admin::FromError(done.error())};
  pb::ListAuditEntriesResponse response;
  admin::FillPage(
      page, records, response,
      [&](const AuditRecord& record) {
        *response.add_audit_entries() = ToAdmin(record, request.parent());
      },
      [](const AuditRecord& record) { return std::to_string(record.sequence); });
  return response;
}

AdminResult<pb::VerifyAuditEntriesResponse> AuditAdmin::Verify(
    const AuditCheckpoints& checkpoints, const std::vector<AuditSource>& sources) {
  std::optional<FullFinding> finding;
  const auto done = store_.Read([&](sql::Connection& sql) -> SqlResult<void> {
    TRY(auto found, VerifyAudit(sql, checkpoints, sources, store_.clock().WallUs()));
    finding = std::move(found);
    return {};
  });
  if (!done) return Fail{admin::FromError(done.error())};
  pb::VerifyAuditEntriesResponse response;
  response.set_ok(finding->ok());
  response.set_sequence(finding->log.sequence);
  response.set_hash(HexEncode(finding->log.hash));
  response.set_problem(finding->problem());
  response.set_checkpoints(finding->log.checkpoints);
  for (const SourceFinding& source : finding->sources) {
    auto& compared = *response.add_sources();
    compared.set_source(source.name);
    compared.set_sequence(source.sequence);
    compared.set_hash(HexEncode(source.hash));
    compared.set_waiting(source.waiting);
    compared.set_problem(source.problem);
  }
  for (const std::string& name : finding->not_compared) response.add_not_compared(name);
  return response;
}

AdminResult<std::string> AuditAdmin::ExportLines(const pb::ExportAuditEntriesRequest& request,
                                                 int64_t& after) {
  TRY(auto query, QueryOf(request.parent(), request.filter()));
  query.oldest_first = true;
  query.after = after;
  query.limit = kExportLines;
  std::vector<AuditRecord> records;
  const auto done = store_.Read([&](sql::Connection& sql) {
    records.clear();
    return ReadAuditLog(sql, query,
                        [&](AuditRecord record) { records.push_back(std::move(record)); });
  });
  if (!done) return Fail{admin::FromError(done.error())};
  std::string lines;
  for (const AuditRecord& record : records) {
    if (!lines.empty()) lines += '\n';
    lines += Line(record);
    after = record.sequence;
  }
  return lines;
}

}  // namespace tollgate::auth
