#include "services/dashboard/transcode/routes.h"

#include <google/api/annotations.pb.h>
#include <google/api/http.pb.h>
#include <algorithm>
#include <set>

#include "common/base/try.h"
#include "services/dashboard/transcode/well_known.h"

namespace tollgate::transcode {
namespace {

namespace pb = google::protobuf;
using Made = BasicResult<Route, std::string>;

// Whether a path variable or a query value can set a field of this type.
bool IsText(const pb::FieldDescriptor* field) {
  if (field->is_map()) return false;
  if (field->message_type() == nullptr) return true;
  return !field->is_repeated() && WellKnownOf(field->message_type()) == WellKnown::kTimestamp;
}

// Refuses fields that the codec does not know at the start instead of in each call.
BasicResult<void, std::string> CheckFields(const pb::Descriptor* type, bool in_query,
                                           std::set<const pb::Descriptor*>& seen) {
  if (type->full_name() == "google.api.HttpBody" || !seen.insert(type).second) return {};
  for (int i = 0; i < type->field_count(); ++i) {
    const pb::FieldDescriptor* field = type->field(i);
    if (!IsKnownKind(field)) return Fail{field->full_name() + " is of a kind that is not served"};
    const pb::Descriptor* inner = field->message_type();
    const WellKnown known = inner == nullptr ? WellKnown::kNone : WellKnownOf(inner);
    // grpc-gateway reads Go's forms of durations, such as "1h30m", from queries.
    if (in_query && known == WellKnown::kDuration)
      return Fail{field->full_name() + ": a duration cannot be in a query"};
    if (inner == nullptr || known != WellKnown::kNone) continue;
    TRY(CheckFields(inner, in_query, seen));
  }
  return {};
}

BasicResult<void, std::string> SetPath(Route& route, const std::string& path) {
  const pb::Descriptor* input = route.method->input_type();
  TRY(auto parsed, PathTemplate::Parse(path));
  route.path = std::move(parsed);
  for (const std::string& name : route.path.variables()) {
    std::vector<const pb::FieldDescriptor*> fields;
    const pb::Descriptor* type = input;
    for (size_t begin = 0; begin <= name.size();) {
      const size_t end = std::min(name.find('.', begin), name.size());
      const auto* field =
          type == nullptr ? nullptr : type->FindFieldByName(name.substr(begin, end - begin));
      if (field == nullptr) return Fail{"there is no field " + name};
      const bool is_last = end == name.size();
      if (!is_last && (field->is_repeated() || field->message_type() == nullptr))
        return Fail{field->name() + " in " + name + " is not a message"};
      fields.push_back(field);
      type = field->message_type();
      begin = end + 1;
    }
    if (!IsText(fields.back())) return Fail{name + " cannot be a part of the path"};
    std::vector<std::string> names;
    for (const auto* field : fields) names.push_back(field->name());
    route.hidden.push_back(std::move(names));
    route.variables.push_back(std::move(fields));
  }
  return {};
}

BasicResult<void, std::string> SetBody(Route& route, const google::api::HttpRule& rule) {
  const pb::Descriptor* input = route.method->input_type();
  if (rule.body() == "*") {
    route.body = Route::Body::kWhole;
  } else if (!rule.body().empty()) {
    route.body = Route::Body::kField;
    route.body_field = input->FindFieldByName(rule.body());
    if (route.body_field == nullptr) return Fail{"there is no field " + rule.body()};
    // grpc-gateway reads scalars and maps with Go's encoding/json instead of proto3 JSON.
    if (route.body_field->is_map() ||
        (route.body_field->message_type() == nullptr &&
         route.body_field->cpp_type() != pb::FieldDescriptor::CPPTYPE_STRING)) {
      return Fail{std::string("body must be a message, a string or a list of them")};
    }
  }
  if (route.body != Route::Body::kNone &&
      (route.http_method == "GET" || route.http_method == "DELETE")) {
    return Fail{route.http_method + " has no body"};
  }
  return {};
}

BasicResult<void, std::string> SetResponse(Route& route, const google::api::HttpRule& rule) {
  if (rule.response_body().empty()) return {};
  route.response_field = route.method->output_type()->FindFieldByName(rule.response_body());
  if (route.response_field == nullptr) return Fail{"there is no field " + rule.response_body()};
  if (route.response_field->is_map() || route.response_field->message_type() == nullptr)
    return Fail{std::string("response_body must be a message or a list of messages")};
  return {};
}

// Used only if exactly one field is a mask.
void SetMask(Route& route) {
  const pb::Descriptor* input = route.method->input_type();
  if (route.http_method != "PATCH" || route.body != Route::Body::kField) return;
  int masks = 0;
  for (int i = 0; i < input->field_count(); ++i) {
    const auto* type = input->field(i)->message_type();
    if (type == nullptr || WellKnownOf(type) != WellKnown::kFieldMask) continue;
    ++masks;
    route.mask_field = input->field(i);
  }
  if (masks != 1 || route.mask_field->is_repeated() ||
      route.body_field->message_type() == nullptr || route.body_field->is_repeated()) {
    route.mask_field = nullptr;
  }
}

Made MakeRoute(const pb::MethodDescriptor* method, const google::api::HttpRule& rule) {
  Route route;
  route.method = method;
  std::string path;
  switch (rule.pattern_case()) {
    case google::api::HttpRule::kGet:
      route.http_method = "GET";
      path = rule.get();
      break;
    case google::api::HttpRule::kPut:
      route.http_method = "PUT";
      path = rule.put();
      break;
    case google::api::HttpRule::kPost:
      route.http_method = "POST";
      path = rule.post();
      break;
    case google::api::HttpRule::kDelete:
      route.http_method = "DELETE";
      path = rule.delete_();
      break;
    case google::api::HttpRule::kPatch:
      route.http_method = "PATCH";
      path = rule.patch();
      break;
    case google::api::HttpRule::kCustom:
      route.http_method = rule.custom().kind();
      path = rule.custom().path();
      break;
    default:
      return Fail{std::string("a rule has no path")};
  }
  TRY(SetPath(route, path));
  TRY(SetBody(route, rule));
  TRY(SetResponse(route, rule));
  if (method->client_streaming()) return Fail{std::string("streams of requests are not served")};
  if (route.body == Route::Body::kField) route.hidden.push_back({rule.body()});
  std::set<std::string> set;  // top-level fields that the path and the body set
  for (const auto& names : route.hidden) {
    if (names.size() == 1) set.insert(names[0]);
  }
  route.has_query = route.body != Route::Body::kWhole &&
                    set.size() < static_cast<size_t>(method->input_type()->field_count());
  SetMask(route);
  std::set<const pb::Descriptor*> request, response;
  TRY(CheckFields(method->input_type(), route.has_query, request));
  TRY(CheckFields(method->output_type(), false, response));
  return route;
}

}  // namespace

std::string Route::RpcPath() const {
  return "/" + method->service()->full_name() + "/" + method->name();
}

BasicResult<RouteTable, std::string> RouteTable::Make(
    const std::vector<const pb::ServiceDescriptor*>& services) {
  RouteTable table;
  for (const pb::ServiceDescriptor* service : services) {
    for (int i = 0; i < service->method_count(); ++i) {
      if (auto added = table.AddMethod(service->method(i)); !added.ok())
        return Fail{service->method(i)->full_name() + ": " + added.error()};
    }
  }
  return table;
}

BasicResult<void, std::string> RouteTable::AddMethod(const pb::MethodDescriptor* method) {
  if (!method->options().HasExtension(google::api::http)) return {};
  const google::api::HttpRule& rule = method->options().GetExtension(google::api::http);
  TRY(auto route, MakeRoute(method, rule));
  Add(std::move(route));
  for (const google::api::HttpRule& more : rule.additional_bindings()) {
    if (more.additional_bindings_size() > 0)
      return Fail{std::string("additional_bindings must not be nested")};
    TRY(auto additional, MakeRoute(method, more));
    Add(std::move(additional));
  }
  return {};
}

void RouteTable::Add(Route route) { routes_[route.http_method].push_back(std::move(route)); }

RouteTable::Found RouteTable::Find(const std::string& http_method,
                                   const std::vector<std::string>& segments, bool get_too) const {
  using Outcome = PathTemplate::Outcome;
  Found found;
  if (const auto own = routes_.find(http_method); own != routes_.end()) {
    for (auto route = own->second.rbegin(); route != own->second.rend(); ++route) {
      const Outcome outcome = route->path.Match(segments, &found.values);
      if (outcome == Outcome::kOnlyVerb) return {};
      if (outcome != Outcome::kMatch) continue;
      found.kind = Found::Kind::kRoute;
      found.route = &*route;
      return found;
    }
  }
  if (get_too && http_method != "GET") {
    const auto gets = routes_.find("GET");
    if (gets != routes_.end()) {
      for (auto route = gets->second.rbegin(); route != gets->second.rend(); ++route) {
        if (route->path.Match(segments, &found.values) != Outcome::kMatch) continue;
        found.kind = Found::Kind::kRoute;
        found.route = &*route;
        return found;
      }
    }
  }
  for (const auto& [method, routes] : routes_) {
    if (method == http_method) continue;
    for (const Route& route : routes) {
      if (route.path.Match(segments, &found.values) == Outcome::kMatch)
        return {.kind = Found::Kind::kOtherMethod};
    }
  }
  return {};
}

std::vector<std::string> SplitPath(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  std::vector<std::string> segments;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    segments.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return segments;
}

}  // namespace tollgate::transcode
