// The admin calls of the audit log. See proto/tollgate/admin/v1/audit.proto for what each does.
#pragma once

#include <functional>
#include <string>

#include "services/auth/admin/calls.h"
#include "services/auth/storage/audit_copy.h"
#include "tollgate/admin/v1/audit.pb.h"

namespace tollgate::auth {

class AuditAdmin {
 public:
  explicit AuditAdmin(AuthStore& store) : store_(store) {}

  AdminResult<admin::v1::AuditEntry> Get(const admin::v1::GetAuditEntryRequest& request);
  AdminResult<admin::v1::ListAuditEntriesResponse> List(
      const Caller& caller, const admin::v1::ListAuditEntriesRequest& request);
  AdminResult<admin::v1::VerifyAuditEntriesResponse> Verify(
      const AuditCheckpoints& checkpoints, const std::vector<AuditSource>& sources);

  // Returns the export's lines after entry `after` and advances `after`. Empty at the end.
  AdminResult<std::string> ExportLines(const admin::v1::ExportAuditEntriesRequest& request,
                                       int64_t& after);

 private:
  AuthStore& store_;
};

}  // namespace tollgate::auth
