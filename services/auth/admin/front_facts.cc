#include "services/auth/admin/front_facts.h"

#include "common/base/try.h"
#include "services/auth/storage/key_query.h"
#include "services/auth/storage/key_use.h"
#include "services/auth/storage/workspace_rows.h"

namespace tollgate::auth {
namespace {

using sql::SqlResult;
using Change = AuthStore::Change;

constexpr int kMaxExpiring = 20;
constexpr size_t kMaxText = 500;

}  // namespace

Result<v1::ReadWorkspaceFactsResponse> ReadWorkspaceFacts(
    AuthStore& store, const v1::ReadWorkspaceFactsRequest& request) {
  v1::ReadWorkspaceFactsResponse response;
  const auto done = store.Read([&](sql::Connection& sql) -> SqlResult<void> {
    response.Clear();
    TRY(auto workspace, ReadWorkspace(sql, request.workspace_id()));
    if (workspace) response.set_report_time_zone(workspace->time_zone);
    TRY(ReadExpiringKeys(
        sql,
        {.workspace = request.workspace_id(),
         .start_us = request.expire_start_us(),
         .end_us = request.expire_end_us(),
         .limit = kMaxExpiring},
        [&](v1::ExpiringKey key) { *response.add_expiring_keys() = std::move(key); }));
    return ReadRefusals(sql, request.workspace_id(), [&](RefusalSum sum) {
      v1::RefusalSum& refusal = *response.add_refusals();
      refusal.set_quarter(sum.quarter);
      refusal.set_code(std::move(sum.code));
      refusal.set_reason(std::move(sum.reason));
      refusal.set_count(sum.count);
    });
  });
  if (!done) return Fail{done.error()};
  return response;
}

Result<v1::NoteChangeResponse> NoteChange(AuthStore& store, const v1::NoteChangeRequest& request) {
  for (const std::string* text : {&request.actor(), &request.action(), &request.subject()}) {
    if (text->empty()) return BadRequest("actor, action and subject are required.", "actor");
  }
  for (const std::string* text : {&request.actor(), &request.address(), &request.action(),
                                  &request.subject(), &request.detail()}) {
    if (text->size() > kMaxText) return BadRequest("A text is too long.", "detail");
  }
  auto id = admin::RequestIdOrNew(request.request_id());
  if (!id) return BadRequest(id.error().message, "request_id");
  const AuthStore::Once once{
      .scope = request.actor(),
      .request_id = *id,
      .content = request.action() + '\n' + request.subject() + '\n' + request.detail()};
  auto answer = store.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
    AuditRecord record;
    record.actor = request.actor();
    record.address = request.address();
    record.action = request.action();
    record.subject = request.subject();
    record.detail = request.detail();
    record.request_id = request.request_id();
    TRY(change.Audit(std::move(record)));
    return std::string("noted");
  });
  v1::NoteChangeResponse response;
  if (answer) return response;
  if (answer.error().reason == admin::RequestIdReused().error.reason) {
    response.set_reused(true);
    return response;
  }
  if (answer.error().error) return Fail{*answer.error().error};
  return Internal("the change was not recorded: " + answer.error().message);
}

}  // namespace tollgate::auth
