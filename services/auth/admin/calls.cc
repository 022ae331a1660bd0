#include "services/auth/admin/calls.h"

#include "common/base/try.h"
#include "services/auth/storage/workspace_rows.h"

namespace tollgate::auth {

std::string OwnerOf(const Caller& caller) {
  return caller.user_id.empty() ? caller.actor : "user:" + caller.user_id;
}

AuditRecord EventOf(const Caller& caller, std::string action, std::string workspace,
                    std::string subject, std::string detail) {
  AuditRecord record;
  record.actor = caller.actor;
  record.address = caller.address;
  record.request_id = caller.request_id;
  record.action = std::move(action);
  record.workspace_id = std::move(workspace);
  record.subject = std::move(subject);
  record.detail = std::move(detail);
  return record;
}

AdminResult<void> Checked(const Result<void>& check, const std::string& field) {
  if (check) return {};
  return admin::InvalidField(field, std::string(check.error().public_message()));
}

AdminResult<void> FirstFailure(std::initializer_list<AdminResult<void>> checks) {
  for (const AdminResult<void>& check : checks) {
    if (!check) return Fail{check.error()};
  }
  return {};
}

sql::SqlResult<void> RequireOpen(AuthStore::Change& change, const std::string& workspace) {
  TRY(auto found, ReadWorkspace(change.connection, workspace));
  if (found && found->state != admin::v1::WORKSPACE_STATE_CLOSED) return {};
  auto refused = change.Refuse(
      !found ? admin::NotFound("there is no workspace " + workspace).error
             : admin::Precondition("WORKSPACE_CLOSED",
                                   "the workspace " + workspace + " is closed: it gets no keys")
                   .error);
  return Fail{refused.error()};
}

AdminResult<void> CheckEtag(const std::string& given, const std::string& current) {
  if (given.empty() || given == current) return {};
  return Fail{admin::Failure{.code = grpc::StatusCode::ABORTED,
                             .reason = "ETAG_MISMATCH",
                             .message = "it was changed meanwhile: read it again, then repeat the "
                                        "change with the new etag"}};
}

}  // namespace tollgate::auth
