// The check before every admin call: who calls, and whether the table of roles lets them.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/admin/caller.h"
#include "common/admin/failure.h"

namespace tollgate::admin {

// full_method: "/tollgate.admin.v1.LedgerService/GetBalance". The workspace is that of the
// request's parent, name or <resource>.name. Errors: UNAUTHENTICATED; PERMISSION_DENIED with the
// reason PERMISSION_DENIED (the role, or no member: the same whether the workspace exists) or
// STEP_UP_REQUIRED; INVALID_ARGUMENT for a name without a workspace, and for a text with U+0000
// in any field, also of messages within.
AdminResult<Caller> Admit(const grpc::ServerContextBase& context, std::string_view full_method,
                          const google::protobuf::Message& request);
// The same for the method that takes this request: each method has a request type of its own.
AdminResult<Caller> Admit(const grpc::ServerContextBase& context,
                          const google::protobuf::Message& request);

// Puts the refusal into the audit log, where the process has one, if the caller lacks the right
// (PERMISSION_DENIED). Admit does it for what it refuses; handlers, for what they refuse later.
void NoteRefusal(const Caller& caller, const Failure& failure);

// The rule alone, for a caller that is known already and a workspace ("" for none); reads: the
// method changes nothing. Answers the caller with workspace and own_only set.
AdminResult<Caller> Check(Caller caller, const MethodRule* rule, const std::string& workspace,
                          bool reads);

// The role that the caller acts with in caller.workspace: the membership's, for a token at most the
// best of its scopes; owner for the operator's command line; unspecified for who is no member.
Role ActingRole(const Caller& caller);

// Fails unless the caller's sign-in is fresh (decision 57), for acts that want it depending on
// their amount; the table has those that always do.
AdminResult<void> RequireStepUp(const Caller& caller);

// "workspaces/acme…" of the request's parent, name or <resource>.name, and the field's path.
struct RequestName {
  std::string field;  // "" for a request without a name
  std::string name;
};
RequestName NameOf(const google::protobuf::Message& request);
// "acme" of "workspaces/acme" and "workspaces/acme/…".
std::optional<std::string> WorkspaceOfName(std::string_view name);

// Whether the method changes nothing: its HTTP rule is a GET.
bool Reads(const google::protobuf::MethodDescriptor& method);

}  // namespace tollgate::admin
