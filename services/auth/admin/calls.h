// What the admin calls of keys and workspaces share.
#pragma once

#include <string>
#include <string_view>

#include "common/admin/requests.h"
#include "common/base/try.h"
#include "services/auth/storage/audit_log.h"
#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

using admin::AdminResult;
using admin::Caller;

// Owner of what the caller creates: the person, also when one of their tokens made the call;
// otherwise the actor.
std::string OwnerOf(const Caller& caller);

// An audit event by this caller.
AuditRecord EventOf(const Caller& caller, std::string action, std::string workspace,
                    std::string subject, std::string detail);

// Turns the result of a check of domain/rules.h into a failure of this field.
AdminResult<void> Checked(const Result<void>& check, const std::string& field);
AdminResult<void> FirstFailure(std::initializer_list<AdminResult<void>> checks);

// The caller's change through `method`. An empty request_id is replaced by a random one that is not
// part of the content.
template <typename Request>
AdminResult<AuthStore::Once> OnceOf(const Caller& caller, std::string_view method,
                                    const Request& request) {
  TRY(auto id, admin::RequestIdOrNew(request.request_id()));
  return AuthStore::Once{.scope = caller.actor,
                         .request_id = std::move(id),
                         .content = std::string(method) + '\n' + admin::ContentOf(request)};
}

template <typename Message>
AdminResult<Message> Parsed(const AdminResult<AuthStore::Answer>& answer) {
  if (!answer) return Fail{answer.error()};
  Message message;
  if (!message.ParseFromString(answer->bytes)) {
    return Fail{admin::FromError(Internal("a stored answer cannot be parsed").error)};
  }
  return message;
}

// OK if the workspace may get keys; otherwise refuses the change.
sql::SqlResult<void> RequireOpen(AuthStore::Change& change, const std::string& workspace);

// Fails with ABORTED ETAG_MISMATCH unless `given` is empty or equals `current`.
AdminResult<void> CheckEtag(const std::string& given, const std::string& current);

}  // namespace tollgate::auth
