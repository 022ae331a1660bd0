// The admin calls of workspaces. See proto/tollgate/admin/v1/workspaces.proto for what each does.
#pragma once

#include <functional>
#include <string>

#include "services/auth/admin/calls.h"
#include "tollgate/admin/v1/workspaces.pb.h"

namespace tollgate::auth {

class WorkspaceAdmin {
 public:
  explicit WorkspaceAdmin(AuthStore& store) : store_(store) {}

  // Does not open the wallet: billing does. A person who calls becomes the workspace's owner.
  AdminResult<admin::v1::Workspace> Create(const Caller& caller,
                                           const admin::v1::CreateWorkspaceRequest& request);
  // Marks a workspace whose history is made up. The mark cannot be removed.
  AdminResult<void> MarkDemonstration(const Caller& caller, const std::string& workspace);
  AdminResult<admin::v1::Workspace> Get(const admin::v1::GetWorkspaceRequest& request);
  AdminResult<admin::v1::ListWorkspacesResponse> List(
      const Caller& caller, const admin::v1::ListWorkspacesRequest& request);
  AdminResult<admin::v1::Workspace> Update(const Caller& caller,
                                           const admin::v1::UpdateWorkspaceRequest& request);
  // Called before billing is asked, which switches auto-reload off.
  static AdminResult<void> CheckClose(const admin::v1::CloseWorkspaceRequest& request);
  // has_zero_balance: billing's answer about the workspace's credit.
  AdminResult<admin::v1::Workspace> Close(const Caller& caller,
                                          const admin::v1::CloseWorkspaceRequest& request,
                                          bool has_zero_balance);
  AdminResult<admin::v1::Workspace> Reopen(const Caller& caller,
                                           const admin::v1::ReopenWorkspaceRequest& request);

  // Asks billing whether a workspace has no credit, holds or debts. May block.
  using PrepareClose = std::function<Result<bool>(const std::string& workspace)>;
  // Closes the workspaces that are due and revokes their keys, with the policy as actor. Postpones
  // a workspace by an hour if it has credit or its credit is unknown. Idempotent.
  AdminResult<void> CloseDue(const PrepareClose& prepare_close);

 private:
  AdminResult<void> CloseNow(const std::string& workspace, int64_t close_at_us);
  AdminResult<void> PutOff(const std::string& workspace, int64_t close_at_us,
                           const std::string& why);

  AuthStore& store_;
};

}  // namespace tollgate::auth
