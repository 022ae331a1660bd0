#include "services/auth/admin/workspace_admin.h"

#include <absl/time/time.h>

#include <algorithm>
#include <optional>

#include "common/admin/values.h"
#include "common/auth_schema/auth_schema.h"
#include "common/base/crypto.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/writer.h"
#include "common/observability/log.h"
#include "services/auth/domain/rules.h"
#include "services/auth/storage/key_rows.h"
#include "services/auth/storage/workspace_rows.h"

namespace tollgate::auth {
namespace pb = tollgate::admin::v1;
using sql::SqlResult;
using Change = AuthStore::Change;
namespace {

constexpr char kWorkspaceName[] = "workspaces/*";
constexpr int64_t kCloseAfterUs = int64_t{7} * 24 * 3600 * 1'000'000;
constexpr int64_t kPutOffUs = int64_t{3600} * 1'000'000;
constexpr int kCloseBatch = 100;

pb::Workspace ToAdmin(const WorkspaceRow& row) {
  pb::Workspace to;
  to.set_name("workspaces/" + row.id);
  to.set_display_name(row.name);
  to.set_state(row.state);
  to.set_report_time_zone(row.time_zone);
  *to.mutable_create_time() = admin::ToTimestamp(row.created_us);
  *to.mutable_update_time() = admin::ToTimestamp(std::max(row.updated_us, row.created_us));
  if (row.close_us > 0) *to.mutable_close_time() = admin::ToTimestamp(row.close_us);
  to.set_etag(std::to_string(row.revision));
  to.set_demonstration(row.demonstration);
  return to;
}

admin::Failure NoWorkspace(const std::string& id) {
  return admin::NotFound("there is no workspace " + id).error;
}

SqlResult<WorkspaceRow> FindWorkspace(Change& change, const std::string& id) {
  TRY(auto found, ReadWorkspace(change.connection, id));
  if (found) return *std::move(found);
  return Fail{change.Refuse(NoWorkspace(id)).error()};
}

// Writes the fields that may change and increments the revision.
SqlResult<void> Save(Change& change, WorkspaceRow& row) {
  row.updated_us = change.now_us;
  ++row.revision;
  return UpdateWorkspace(change.connection, row);
}

// The person who creates a workspace becomes its owner.
SqlResult<void> MakeOwner(Change& change, const std::string& workspace,
                          const std::string& user_id) {
  TRY(auto known, auth_schema::AddOwner(change.connection, workspace, user_id, change.now_us));
  if (known) return {};
  return Fail{change.Refuse(admin::NotFound("there is no such user: " + user_id).error).error()};
}

Caller Policy() {
  Caller policy;
  policy.actor = "policy:close";
  return policy;
}

// Id of a due closing: the first replica carries it out, once.
AuthStore::Once OnceOfClose(const std::string& workspace, int64_t close_at_us) {
  const std::string id = workspace + "-" + std::to_string(close_at_us);
  return {.scope = Policy().actor, .request_id = id, .content = id};
}

AdminResult<void> CheckTimeZone(const std::string& name, const std::string& field) {
  // LoadTimeZone opens the name as a file, so paths are refused.
  const bool is_name = !name.empty() && name.size() <= 64 && name.find("..") == std::string::npos &&
                       !name.starts_with('/') && !name.starts_with("file:");
  absl::TimeZone zone;
  if (name == "UTC" || (is_name && absl::LoadTimeZone(name, &zone))) return {};
  return admin::InvalidField(
      field, "\"" + ToValidUtf8(name, 64) + "\" is not a time zone such as Europe/Berlin or UTC");
}

}  // namespace

AdminResult<pb::Workspace> WorkspaceAdmin::Create(const Caller& caller,
                                                  const pb::CreateWorkspaceRequest& request) {
  WorkspaceRow row;
  row.id =
      request.workspace_id().empty() ? "ws-" + HexEncode(RandomBytes(6)) : request.workspace_id();
  const pb::Workspace& given = request.workspace();
  row.name = given.display_name().empty() ? row.id : given.display_name();
  row.time_zone = given.report_time_zone().empty() ? "UTC" : given.report_time_zone();
  TRY(FirstFailure({Checked(CheckWorkspaceId(row.id), "workspace_id"),
                    Checked(CheckName(row.name), "workspace.display_name"),
                    CheckTimeZone(row.time_zone, "workspace.report_time_zone")}));
  TRY(auto once, OnceOf(caller, "CreateWorkspace", request));
  return Parsed<pb::Workspace>(
      store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
        row.created_us = change.now_us;
        ++change.version;
        TRY(auto added, InsertWorkspace(change.connection, row));
        if (!added) {
          return change.Refuse(admin::Failure{
              .code = grpc::StatusCode::ALREADY_EXISTS,
              .reason = "WORKSPACE_EXISTS",
              .message = "the workspace " + row.id + " exists already: choose another id"});
        }
        if (!caller.user_id.empty()) {
          TRY(MakeOwner(change, row.id, caller.user_id));
        }
        TRY(change.Audit(EventOf(caller, "workspace.create", row.id, row.id,
                                 "name: " + json::Quoted(row.name))));
        return ToAdmin(row).SerializeAsString();
      }));
}

AdminResult<pb::Workspace> WorkspaceAdmin::Get(const pb::GetWorkspaceRequest& request) {
  TRY(auto parts, admin::NameParts(kWorkspaceName, request.name(), "name"));
  std::optional<WorkspaceRow> found;
  const auto done = store_.Read([&](sql::Connection& sql) -> SqlResult<void> {
    TRY(found, ReadWorkspace(sql, parts.front()));
    return {};
  });
  if (!done) return Fail{admin::FromError(done.error())};
  if (!found) return Fail{NoWorkspace(parts.front())};
  return ToAdmin(*found);
}

AdminResult<pb::ListWorkspacesResponse> WorkspaceAdmin::List(
    const Caller& caller, const pb::ListWorkspacesRequest& request) {
  TRY(auto page, admin::PageOfList(request, caller));
  WorkspaceQuery query{.limit = page.size + 1};
  if (!caller.installation && !caller.platform_operator) {
    if (caller.roles.empty()) return pb::ListWorkspacesResponse();
    query.ids.emplace();
    for (const auto& [workspace, role] : caller.roles) query.ids->push_back(workspace);
  }
  if (!page.position.empty()) {
    const size_t colon = page.position.find(':');
    query.before_us = std::strtoll(page.position.c_str(), nullptr, 10);
    query.before_id = page.position.substr(colon + 1);
  }
  std::vector<WorkspaceRow> rows;
  const auto done = store_.Read([&](sql::Connection& sql) -> SqlResult<void> {
    TRY(rows, ListWorkspaces(sql, query));
    return {};
  });
  if (!done) return Fail{admin::FromError(done.error())};
  pb::ListWorkspacesResponse response;
  admin::FillPage(
      page, rows, response,
      [&](const WorkspaceRow& row) { *response.add_workspaces() = ToAdmin(row); },
      [](const WorkspaceRow& row) { return std::to_string(row.created_us) + ":" + row.id; });
  return response;
}

AdminResult<pb::Workspace> WorkspaceAdmin::Update(const Caller& caller,
                                                  const pb::UpdateWorkspaceRequest& request) {
  TRY(auto parts, admin::NameParts(kWorkspaceName, request.workspace().name(), "workspace.name"));
  static constexpr std::string_view kFields[] = {"display_name", "report_time_zone"};
  pb::Workspace given = request.workspace();
  given.clear_name();
  given.clear_etag();
  TRY(auto fields, admin::MaskedFields(request.update_mask(), given, kFields));
  for (const std::string& field : fields) {
    TRY(field == "display_name"
            ? Checked(CheckName(given.display_name()), "workspace.display_name")
            : CheckTimeZone(given.report_time_zone(), "workspace.report_time_zone"));
  }
  TRY(auto once, OnceOf(caller, "UpdateWorkspace", request));
  return Parsed<pb::Workspace>(
      store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
        TRY(auto row, FindWorkspace(change, parts.front()));
        if (auto current = CheckEtag(request.workspace().etag(), std::to_string(row.revision));
            !current) {
          return change.Refuse(current.error());
        }
        std::string detail;
        const auto set = [&](const char* label, const std::string& value, std::string& into) {
          if (into == value) return;
          detail += (detail.empty() ? "" : "; ") + std::string(label) + ": " + into + " → " + value;
          into = value;
        };
        for (const std::string& field : fields) {
          if (field == "display_name") set("name", given.display_name(), row.name);
          if (field == "report_time_zone") set("zone", given.report_time_zone(), row.time_zone);
        }
        if (detail.empty()) return ToAdmin(row).SerializeAsString();
        TRY(Save(change, row));
        TRY(change.Audit(EventOf(caller, "workspace.update", row.id, row.id, detail)));
        return ToAdmin(row).SerializeAsString();
      }));
}

AdminResult<void> WorkspaceAdmin::CheckClose(const pb::CloseWorkspaceRequest& request) {
  return Checked(CheckRemark(request.reason(), "reason"), "reason");
}

AdminResult<pb::Workspace> WorkspaceAdmin::Close(const Caller& caller,
                                                 const pb::CloseWorkspaceRequest& request,
                                                 bool has_zero_balance) {
  TRY(auto parts, admin::NameParts(kWorkspaceName, request.name(), "name"));
  TRY(CheckClose(request));
  TRY(auto once, OnceOf(caller, "CloseWorkspace", request));
  return Parsed<pb::Workspace>(
      store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
        TRY(auto row, FindWorkspace(change, parts.front()));
        if (row.state != pb::WORKSPACE_STATE_ACTIVE) return ToAdmin(row).SerializeAsString();
        if (!has_zero_balance) {
          return change.Refuse(
              admin::Precondition("BALANCE_NOT_ZERO",
                                  "the workspace " + row.id +
                                      " has, holds or owes credit: use it up, give it back with an "
                                      "adjustment, or wait until running requests have ended")
                  .error);
        }
        row.state = pb::WORKSPACE_STATE_CLOSING;
        row.close_us = change.now_us + kCloseAfterUs;
        TRY(Save(change, row));
        TRY(change.Audit(EventOf(caller, "workspace.close", row.id, row.id, request.reason())));
        return ToAdmin(row).SerializeAsString();
      }));
}

AdminResult<pb::Workspace> WorkspaceAdmin::Reopen(const Caller& caller,
                                                  const pb::ReopenWorkspaceRequest& request) {
  TRY(auto parts, admin::NameParts(kWorkspaceName, request.name(), "name"));
  TRY(Checked(CheckRemark(request.reason(), "reason"), "reason"));
  TRY(auto once, OnceOf(caller, "ReopenWorkspace", request));
  return Parsed<pb::Workspace>(
      store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
        TRY(auto row, FindWorkspace(change, parts.front()));
        if (row.state == pb::WORKSPACE_STATE_ACTIVE) return ToAdmin(row).SerializeAsString();
        if (row.state == pb::WORKSPACE_STATE_CLOSED) {
          return change.Refuse(
              admin::Precondition("WORKSPACE_CLOSED", "the workspace is closed; its keys are gone")
                  .error);
        }
        row.state = pb::WORKSPACE_STATE_ACTIVE;
        row.close_us = 0;
        TRY(Save(change, row));
        TRY(change.Audit(EventOf(caller, "workspace.reopen", row.id, row.id, request.reason())));
        return ToAdmin(row).SerializeAsString();
      }));
}

AdminResult<void> WorkspaceAdmin::CloseDue(const PrepareClose& prepare_close) {
  std::vector<WorkspaceRow> due;
  const auto done = store_.Read([&](sql::Connection& sql) -> SqlResult<void> {
    TRY(due, WorkspacesToClose(sql, store_.clock().WallUs(), kCloseBatch));
    return {};
  });
  if (!done) return Fail{admin::FromError(done.error())};
  for (const WorkspaceRow& row : due) {
    // Payments may have arrived since Close checked.
    const auto zero = prepare_close(row.id);
    std::string why;
    if (!zero) why = "its credit is unknown: " + zero.error().ToString();
    if (zero && !*zero) why = "it has, holds or owes credit";
    TRY(why.empty() ? CloseNow(row.id, row.close_us) : PutOff(row.id, row.close_us, why));
    // If billing does not answer, do not wait for it once per workspace.
    if (!zero) break;
  }
  return {};
}

AdminResult<void> WorkspaceAdmin::PutOff(const std::string& workspace, int64_t close_at_us,
                                         const std::string& why) {
  const Caller policy = Policy();
  const auto once = OnceOfClose(workspace, close_at_us);
  auto answer = store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
    TRY(auto row, FindWorkspace(change, workspace));
    if (row.state != pb::WORKSPACE_STATE_CLOSING || row.close_us != close_at_us) {
      return std::string();
    }
    // Audits the first postponement only: a repeated one finds close_us exactly kPutOffUs after the
    // last update.
    const bool again = row.close_us - row.updated_us == kPutOffUs;
    row.close_us = change.now_us + kPutOffUs;
    TRY(Save(change, row));
    if (again) return workspace;
    TRY(change.Audit(EventOf(policy, "workspace.close_put_off", workspace, workspace, why)));
    return workspace;
  });
  if (!answer) return Fail{answer.error()};
  log::Warn("a workspace was not closed; will retry in an hour",
            {{"workspace", workspace}, {"reason", why}});
  return {};
}

AdminResult<void> WorkspaceAdmin::CloseNow(const std::string& workspace, int64_t close_at_us) {
  const Caller policy = Policy();
  const auto once = OnceOfClose(workspace, close_at_us);
  auto answer = store_.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
    TRY(auto row, FindWorkspace(change, workspace));
    // Closing was cancelled meanwhile.
    if (row.state != pb::WORKSPACE_STATE_CLOSING || row.close_us != close_at_us) {
      return std::string();
    }
    TRY(auto keys, KeysNotRevoked(change.connection, workspace));
    for (KeyRecord& record : keys) {
      record.key.set_state(v1::KEY_STATE_REVOKED);
      record.state_reason = "the workspace was closed";
      record.key.set_version(++change.version);
      record.key.set_changed_at_us(change.now_us);
      TRY(UpdateKey(change.connection, record));
    }
    row.state = pb::WORKSPACE_STATE_CLOSED;
    TRY(Save(change, row));
    TRY(change.Audit(EventOf(policy, "workspace.closed", workspace, workspace,
                             std::to_string(keys.size()) + " keys revoked")));
    return workspace;
  });
  if (!answer) return Fail{answer.error()};
  return {};
}

}  // namespace tollgate::auth
