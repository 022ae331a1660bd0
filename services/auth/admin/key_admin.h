// The admin calls of keys. See proto/tollgate/admin/v1/keys.proto for what each does.
#pragma once

#include <string>
#include <vector>

#include "services/auth/admin/calls.h"
#include "tollgate/admin/v1/keys.pb.h"

namespace tollgate::auth {

class KeyAdmin {
 public:
  explicit KeyAdmin(AuthStore& store) : store_(store) {}

  AdminResult<admin::v1::CreateKeyResponse> Create(const Caller& caller,
                                                   const admin::v1::CreateKeyRequest& request);
  AdminResult<admin::v1::Key> Get(const admin::v1::GetKeyRequest& request);
  AdminResult<admin::v1::ListKeysResponse> List(const Caller& caller,
                                                const admin::v1::ListKeysRequest& request);
  // Returns the keys with these ids, in this order, on one page. Leaves out ids of other
  // workspaces.
  AdminResult<admin::v1::ListKeysResponse> ListByIds(const std::string& workspace,
                                                     const std::vector<std::string>& ids);
  AdminResult<admin::v1::Key> Update(const Caller& caller,
                                     const admin::v1::UpdateKeyRequest& request);
  AdminResult<admin::v1::Key> Disable(const Caller& caller,
                                      const admin::v1::DisableKeyRequest& request);
  AdminResult<admin::v1::Key> Enable(const Caller& caller,
                                     const admin::v1::EnableKeyRequest& request);
  AdminResult<admin::v1::Key> Revoke(const Caller& caller,
                                     const admin::v1::RevokeKeyRequest& request);
  AdminResult<admin::v1::RotateKeyResponse> Rotate(const Caller& caller,
                                                   const admin::v1::RotateKeyRequest& request);
  AdminResult<admin::v1::ImportKeysResponse> Import(const Caller& caller,
                                                    const admin::v1::ImportKeysRequest& request);
  // The audit event has the policy as actor and names the reporter in its detail.
  AdminResult<admin::v1::ReportLeakedKeyResponse> ReportLeak(
      const Caller& caller, const admin::v1::ReportLeakedKeyRequest& request);

 private:
  template <typename Request>
  AdminResult<admin::v1::Key> SetState(const Caller& caller, std::string_view method,
                                       const Request& request, v1::KeyState state);

  AuthStore& store_;
};

}  // namespace tollgate::auth
