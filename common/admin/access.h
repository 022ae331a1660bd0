// The check before every admin call: identifies the caller and applies the method's rule.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/admin/caller.h"
#include "common/admin/failure.h"
#include "common/admin/values.h"

namespace tollgate::admin {

// full_method: "/tollgate.admin.v1.LedgerService/GetBalance". The workspace is taken from the
// request's parent, name or <resource>.name. Errors: UNAUTHENTICATED; PERMISSION_DENIED with the
// reason PERMISSION_DENIED (wrong role or not a member; the same whether or not the workspace
// exists) or STEP_UP_REQUIRED; INVALID_ARGUMENT for a name without a workspace, for a request_id
// that is malformed, or missing where its field is REQUIRED, and for U+0000 in any string field,
// nested messages included.
AdminResult<Caller> Admit(const grpc::ServerContextBase& context, std::string_view full_method,
                          const google::protobuf::Message& request);
// Finds the method by the type of the request: each method has its own request type.
AdminResult<Caller> Admit(const grpc::ServerContextBase& context,
                          const google::protobuf::Message& request);

// Records a refusal (PERMISSION_DENIED) in the audit log if the process has one. Admit does this
// for its own refusals; handlers call it for later ones.
void NoteRefusal(const Caller& caller, const Failure& failure);

// Only the rule, for a known caller and a workspace ("" for none). reads: the method changes
// nothing. Returns the caller with workspace and own_only set.
AdminResult<Caller> Check(Caller caller, const Rule* rule, const std::string& workspace,
                          bool reads);

// The role that the caller acts with in caller.workspace: the membership's role, for a token
// limited to the best of its scopes; owner for the operator's command line; unspecified for a
// non-member.
Role ActingRole(const Caller& caller);

// Fails unless the caller's sign-in is fresh (decision 57). For methods that need it only above an
// amount; the table marks those that always need it.
AdminResult<void> RequireStepUp(const Caller& caller);

// The request's parent, name or <resource>.name ("workspaces/acme…"), and the path of that field.
struct RequestName {
  std::string field;  // "" for a request without a name
  std::string name;
};
RequestName NameOf(const google::protobuf::Message& request);
// The parts of this name, by the pattern in the method's HTTP rule: "workspaces/*/keys/*". For a
// method with one pattern.
AdminResult<Parts> NameParts(const google::protobuf::Message& request);
// "acme" of "workspaces/acme" and "workspaces/acme/…".
std::optional<std::string> WorkspaceOfName(std::string_view name);

// Whether the method changes nothing: its HTTP rule is a GET.
bool Reads(const google::protobuf::MethodDescriptor& method);

}  // namespace tollgate::admin
