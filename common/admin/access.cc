#include "common/admin/access.h"

#include <google/api/annotations.pb.h>
#include <google/api/field_behavior.pb.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <vector>

#include "common/admin/values.h"
#include "common/audit/refused_calls.h"
#include "common/base/clock.h"
#include "common/base/try.h"

namespace tollgate::admin {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr std::string_view kPackage = "tollgate.admin.v1.";
bool IsText(const FieldDescriptor* field) {
  return field != nullptr && !field->is_repeated() &&
         field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
}

const MethodDescriptor* MethodOf(const Message& request) {
  const auto* file = request.GetDescriptor()->file();
  for (int s = 0; s < file->service_count(); ++s) {
    for (int m = 0; m < file->service(s)->method_count(); ++m) {
      const MethodDescriptor* method = file->service(s)->method(m);
      if (method->input_type() == request.GetDescriptor()) return method;
    }
  }
  return nullptr;
}

// What the scopes of a token allow at most: the best of its roles, in the workspaces that it is
// limited to.
Allowed AllowedByScopes(const Caller& caller, const Rule& rule, const std::string& workspace) {
  bool limited = false, listed = false;
  Allowed best = Allowed::kNo;
  for (const std::string& scope : caller.scopes) {
    if (const auto only = WorkspaceOfName(scope)) {
      limited = true;
      listed = listed || *only == workspace;
    } else if (scope == kOperatorScope) {
      if (caller.platform_operator && rule.operators()) best = Allowed::kYes;
    } else if (const auto named = RoleNamed(scope)) {
      best = std::max(best, RoleAllowed(rule, *named));
    }
  }
  // Methods for everybody concern the token's own person, or say nothing of a workspace.
  if (rule.everyone()) {
    return !limited || workspace.empty() || listed ? Allowed::kYes : Allowed::kNo;
  }
  return !limited || listed ? best : Allowed::kNo;
}

// "" if the request has none. INVALID_ARGUMENT if it is malformed, or missing where it is required.
AdminResult<std::string> RequestIdOf(const Message& request) {
  const auto* field = request.GetDescriptor()->FindFieldByName("request_id");
  if (!IsText(field)) return std::string();
  std::string id = request.GetReflection()->GetString(request, field);
  const auto& behavior = field->options().GetRepeatedExtension(google::api::field_behavior);
  const bool required = std::ranges::find(behavior, google::api::REQUIRED) != behavior.end();
  if (id.empty() && !required) return id;
  return RequiredRequestId(id);
}

std::string_view PathOf(const google::api::HttpRule& rule) {
  switch (rule.pattern_case()) {
    case google::api::HttpRule::kGet:
      return rule.get();
    case google::api::HttpRule::kPost:
      return rule.post();
    case google::api::HttpRule::kPatch:
      return rule.patch();
    case google::api::HttpRule::kDelete:
      return rule.delete_();
    default:
      return "";
  }
}

// The path of the first text with U+0000, which PostgreSQL cannot store; "" without one.
std::string FieldWithNul(const Message& message) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool text = field->type() == FieldDescriptor::TYPE_STRING;
    if (!text && field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (text) {
        const std::string value = field->is_repeated()
                                      ? reflection->GetRepeatedString(message, field, i)
                                      : reflection->GetString(message, field);
        if (value.find('\0') != std::string::npos) return field->name();
        continue;
      }
      const std::string inner =
          FieldWithNul(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                            : reflection->GetMessage(message, field));
      if (!inner.empty()) return field->name() + "." + inner;
    }
  }
  return "";
}

std::string RolesOf(const Rule& rule) {
  std::string names;
  for (int r = common::v1::ROLE_OWNER; r <= common::v1::ROLE_VIEWER; ++r) {
    if (RoleAllowed(rule, static_cast<Role>(r)) != Allowed::kYes) continue;
    if (!names.empty()) names += ", ";
    names += RoleName(static_cast<Role>(r));
  }
  return names;
}

Fail<Failure> Denied(std::string message) {
  return PermissionDenied("PERMISSION_DENIED", std::move(message));
}

}  // namespace

RequestName NameOf(const Message& request) {
  const auto* reflection = request.GetReflection();
  const Descriptor* type = request.GetDescriptor();
  for (const char* field : {"parent", "name"}) {
    if (const auto* text = type->FindFieldByName(field); IsText(text)) {
      return {field, reflection->GetString(request, text)};
    }
  }
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const auto* text = field->message_type()->FindFieldByName("name");
    if (!IsText(text)) continue;
    const Message& resource = reflection->GetMessage(request, field);
    return {field->name() + ".name", resource.GetReflection()->GetString(resource, text)};
  }
  return {};
}

std::optional<std::string> WorkspaceOfName(std::string_view name) {
  constexpr std::string_view kPrefix = "workspaces/";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const size_t end = name.find('/', kPrefix.size());
  auto parts = MatchName("workspaces/*", name.substr(0, end));
  if (!parts) return std::nullopt;
  return parts->front();
}

AdminResult<Parts> NameParts(const Message& request) {
  const MethodDescriptor* method = MethodOf(request);
  if (method == nullptr) return Denied("nobody may call this method");
  const RequestName named = NameOf(request);
  std::string_view path = PathOf(method->options().GetExtension(google::api::http));
  const std::string variable = "{" + named.field + "=";
  const size_t begin = path.find(variable);
  if (begin == std::string_view::npos) {
    return Fail{FromError(Internal("the HTTP rule of the method has no resource name").error)};
  }
  path.remove_prefix(begin + variable.size());
  return NameParts(path.substr(0, path.find('}')), named.name, named.field);
}

bool Reads(const MethodDescriptor& method) {
  const auto& http = method.options().GetExtension(google::api::http);
  return http.pattern_case() == google::api::HttpRule::kGet;
}

Role ActingRole(const Caller& caller) {
  if (caller.installation) return Role::ROLE_OWNER;
  const auto member = caller.roles.find(caller.workspace);
  if (member == caller.roles.end()) return Role::ROLE_UNSPECIFIED;
  if (!caller.by_token) return member->second;
  Role best = Role::ROLE_UNSPECIFIED;
  for (const std::string& scope : caller.scopes) {
    const auto named = RoleNamed(scope);
    if (named && (best == Role::ROLE_UNSPECIFIED || *named < best)) best = *named;
  }
  return best == Role::ROLE_UNSPECIFIED ? best : std::max(best, member->second);
}

AdminResult<void> RequireStepUp(const Caller& caller) {
  if (caller.fresh) return {};
  if (caller.by_token) {
    return PermissionDenied("STEP_UP_REQUIRED",
                            "this wants a person who has just signed in; an access token cannot "
                            "do it");
  }
  if (caller.installation) {
    return PermissionDenied(
        "STEP_UP_REQUIRED",
        "this wants an operator who is known: call with a client certificate, or over the unix "
        "socket of the service");
  }
  return PermissionDenied("STEP_UP_REQUIRED",
                          "this requires a sign-in within the last five minutes: sign in again and "
                          "repeat the call");
}

AdminResult<Caller> Check(Caller caller, const Rule* rule, const std::string& workspace,
                          bool reads) {
  if (rule == nullptr) return Denied("nobody may call this method");
  caller.workspace = workspace;
  if (caller.support && !reads) return Denied("a support session may only read");
  const Allowed by_scope =
      caller.by_token ? AllowedByScopes(caller, *rule, workspace) : Allowed::kYes;
  if (by_scope == Allowed::kNo || (caller.by_token && rule->no_tokens())) {
    return Denied("the access token's scopes do not allow this");
  }
  bool allowed =
      caller.installation || rule->everyone() || (caller.platform_operator && rule->operators());
  if (!allowed && !workspace.empty()) {
    const auto member = caller.roles.find(workspace);
    if (member == caller.roles.end()) {
      return Denied("you are not a member of the workspace " + workspace +
                    ", or it does not exist");
    }
    const Allowed by_role = RoleAllowed(*rule, member->second);
    allowed = by_role != Allowed::kNo;
    caller.own_only = std::min(by_role, by_scope) == Allowed::kOwn;
    if (!allowed) {
      const std::string roles = RolesOf(*rule);
      auto failure =
          Denied("your role in " + workspace + " is " + std::string(RoleName(member->second)) +
                 (roles.empty() ? "; this is for operators of the platform"
                                : "; this wants one of: " + roles));
      if (!roles.empty()) failure.error.metadata["roles"] = roles;
      return failure;
    }
  }
  if (!allowed) return Denied("this is for operators of the platform");
  if (rule->step_up()) {
    TRY(RequireStepUp(caller));
  }
  return caller;
}

void NoteRefusal(const Caller& caller, const Failure& failure) {
  if (failure.code != grpc::StatusCode::PERMISSION_DENIED) return;
  // Members read this log: callers who are not members must not be able to write into it.
  const bool member = caller.roles.contains(caller.workspace);
  audit::RefusedCalls::OfProcess().Note({.actor = caller.actor,
                                         .address = caller.address,
                                         .method = caller.method,
                                         .workspace = member ? caller.workspace : "",
                                         .reason = failure.reason + ": " + failure.message},
                                        SystemClock::Get().WallUs());
}

AdminResult<Caller> Admit(const grpc::ServerContextBase& context, std::string_view full_method,
                          const Message& request) {
  TRY(auto caller, CallerOf(context));
  if (full_method.starts_with('/')) full_method.remove_prefix(1);
  caller.method = full_method;
  if (const std::string field = FieldWithNul(request); !field.empty()) {
    return InvalidField(field, "a text must not contain the character U+0000");
  }
  auto id = RequestIdOf(request);
  if (id) caller.request_id = *id;
  const Rule* rule =
      full_method.starts_with(kPackage) ? RuleOf(full_method.substr(kPackage.size())) : nullptr;
  std::string dotted(full_method);
  std::ranges::replace(dotted, '/', '.');
  const auto* method = request.GetDescriptor()->file()->pool()->FindMethodByName(dotted);
  const RequestName named = NameOf(request);
  const auto workspace = WorkspaceOfName(named.name);
  const bool everywhere =
      caller.installation || (caller.platform_operator && rule != nullptr && rule->operators());
  // A member without the workspace's name would be told of a role that is not the point.
  if (!workspace && !everywhere && rule != nullptr && !rule->everyone() &&
      named.name.starts_with("workspaces")) {
    return InvalidField(named.field, "\"" + named.name + "\" does not name a workspace");
  }
  const bool reads = method != nullptr && Reads(*method);
  auto checked = Check(caller, rule, workspace.value_or(""), reads);
  if (!checked) {
    caller.workspace = workspace.value_or("");
    NoteRefusal(caller, checked.error());
  } else if (!id) {
    return Fail{id.error()};
  }
  return checked;
}

AdminResult<Caller> Admit(const grpc::ServerContextBase& context, const Message& request) {
  const MethodDescriptor* method = MethodOf(request);
  if (method == nullptr) return Denied("nobody may call this method");
  return Admit(context, method->service()->full_name() + "/" + method->name(), request);
}

}  // namespace tollgate::admin
