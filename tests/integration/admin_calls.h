// Calls of every method of tollgate.admin.v1 through the dashboard's JSON front, built from
// descriptors and table rows, and the checks that follow a call.
#pragma once

#include <google/api/annotations.pb.h>
#include <google/api/field_behavior.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/integration/admin_methods_table.h"
#include "tests/integration/admin_world.h"

namespace tollgate::test {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;

inline std::vector<const MethodDescriptor*> Methods() {
  std::vector<std::string> files;
  google::protobuf::DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
  std::vector<const MethodDescriptor*> methods;
  for (const std::string& name : files) {
    if (!name.starts_with("tollgate/admin/v1/")) continue;
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(name);
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.push_back(file->service(s)->method(m));
      }
    }
  }
  return methods;
}
inline std::string NameOf(const MethodDescriptor& method) {
  return method.service()->name() + "/" + method.name();
}

inline bool Is(const FieldDescriptor& field, google::api::FieldBehavior wanted) {
  const auto& options = field.options();
  for (int i = 0; i < options.ExtensionSize(google::api::field_behavior); ++i) {
    if (options.GetExtension(google::api::field_behavior, i) == wanted) return true;
  }
  return false;
}

// The parsed HTTP rule of a method; additional bindings are ignored.
struct Route {
  std::string verb;      // "POST"
  std::string prefix;    // "/admin/v1/"
  std::string variable;  // "key.name"; "" for none
  std::string suffix;    // "/keys" or ":disable"
  std::string body;      // "*", "key" or ""
};
inline Route RouteOf(const MethodDescriptor& method) {
  const auto& http = method.options().GetExtension(google::api::http);
  Route route;
  route.body = http.body();
  std::string path;
  for (const auto& [verb, text] :
       {std::pair("GET", http.get()), std::pair("POST", http.post()),
        std::pair("PATCH", http.patch()), std::pair("DELETE", http.delete_())}) {
    if (text.empty()) continue;
    route.verb = verb;
    path = text;
  }
  const size_t open = path.find('{'), close = path.find('}'), equals = path.find('=');
  route.prefix = path.substr(0, open);
  if (open == std::string::npos) return route;
  route.variable = path.substr(open + 1, equals - open - 1);
  route.suffix = path.substr(close + 1);
  return route;
}

class AdminCalls : public AdminWorld {
 protected:
  // One call of a method.
  struct Call {
    std::string name, body, query, request_id;
  };
  HttpResponse Do(const MethodDescriptor& method, const Call& call) {
    const Route route = RouteOf(method);
    std::string body = call.body;
    std::string query = call.query;
    if (!call.request_id.empty()) {
      if (route.body == "*") {
        body.insert(1, R"("requestId":")" + call.request_id + "\"" + (body == "{}" ? "" : ","));
      } else {
        query += (query.empty() ? "" : "&") + std::string("request_id=") + call.request_id;
      }
    }
    std::string target = route.prefix;
    if (!route.variable.empty()) target += call.name + route.suffix;
    if (!query.empty()) target += "?" + query;
    return Admin(route.verb, target, body);
  }
  Call CallOf(const MethodDescriptor& method, const MethodRow& row) {
    const bool has_id = method.input_type()->FindFieldByName("request_id") != nullptr;
    return {.name = Filled(row.name),
            .body = Filled(row.body),
            .query = "",
            .request_id = has_id ? NewId() : ""};
  }

  int64_t NewestAuditEntry() {
    const Json page = Admin("GET", "/admin/v1/auditEntries?page_size=1", "").json();
    const std::string number = page["auditEntries"][0]["sequence"].str();
    return number.empty() ? 0 : std::stoll(number);
  }
  // Whether the log has this action by this actor, with the id of the request and the caller's
  // address, after the entry; entries of billing are copied within seconds (decision 56).
  bool Audited(int64_t after, const std::string& action, const std::string& actor,
               const std::string& request_id, std::string& seen) {
    return WaitUntil(
        [&] {
          seen.clear();
          const Json page = Admin("GET", "/admin/v1/auditEntries?page_size=200", "").json();
          for (const Json& entry : page["auditEntries"].elements()) {
            if (std::stoll(entry["sequence"].str()) <= after) continue;
            const std::string id = entry["requestId"].str(), by = entry["actor"].str(),
                              from = entry["address"].str();
            if (entry["action"].str() == action && id == request_id && by == actor &&
                from == "127.0.0.1") {
              return true;
            }
            seen += entry["action"].str() + " (" + id + ") by " + by + " from \"" + from + "\" ";
          }
          return false;
        },
        5'000, 50);
  }

  void CheckSuccess(const MethodDescriptor& method, const MethodRow& row);
  void CheckAgain(const MethodDescriptor& method, const MethodRow& row, const Call& call,
                  const HttpResponse& first);
  void CheckPages(const MethodDescriptor& method, const MethodRow& row);
};

// A JSON object without one of its members.
inline std::string Without(const std::string& object, const std::string& member) {
  Json out = Json::Object();
  const Json in = Json::Parse(object).value_or(Json());
  for (const auto& [name, value] : in.members()) {
    if (name != member) out.Set(name, value);
  }
  return out.Dump();
}
inline std::string With(const std::string& object, const std::string& member, const Json& value) {
  Json out = Json::Parse(object).value_or(Json::Object());
  out.Set(member, value);
  return out.Dump();
}

// The response without members that a repeated call omits, or reports as they are by then.
inline std::string Comparable(const HttpResponse& answer) {
  std::string text = answer.body;
  for (const char* member :
       {"secret", "secretShown", "signInPath", "acceptPath", "signingSecret", "state", "endTime",
        "workspaces", "entries", "holds", "usageRecords", "violations", "chargedUsd",
        // changed by an engine meanwhile
        "routers"}) {
    text = Without(text, member);
  }
  return text;
}

// A change happens once per request id and is in the audit log; a read leaves no entry there.
inline void AdminCalls::CheckSuccess(const MethodDescriptor& method, const MethodRow& row) {
  const Call call = CallOf(method, row);
  const int64_t before = NewestAuditEntry();
  const HttpResponse first = Do(method, call);
  ASSERT_EQ(first.status, 200) << row.method << ": " << first.body;
  const bool reads = RouteOf(method).verb == "GET";
  EXPECT_EQ(reads, row.audit.empty() && row.no_audit_because.empty())
      << row.method << ": a change is in the audit log, or its row says why not";
  if (!row.audit.empty()) {
    const std::string actor = row.actor.empty() ? boss_.actor : std::string(row.actor);
    std::string seen;
    EXPECT_TRUE(Audited(before, std::string(row.audit), actor, call.request_id, seen))
        << row.method << " left no " << row.audit << " of " << call.request_id << " by " << actor
        << " in the audit log, but: " << seen;
  }
  if (!reads) CheckAgain(method, row, call, first);
}

// A repetition with the same id gets the same response, and the id cannot be used for another
// request. A method without an id accepts or refuses a repetition by its row.
inline void AdminCalls::CheckAgain(const MethodDescriptor& method, const MethodRow& row,
                                   const Call& call, const HttpResponse& first) {
  const HttpResponse again = Do(method, call);
  if (call.request_id.empty()) {
    EXPECT_EQ(Reason(again), row.again) << row.method << " repeated: " << again.body;
    if (row.again.empty()) EXPECT_EQ(again.status, 200) << row.method << again.body;
    return;
  }
  EXPECT_EQ(again.status, 200) << row.method << " repeated: " << again.body;
  EXPECT_EQ(Comparable(again), Comparable(first)) << row.method;
  if (row.other.empty()) return;
  Call other = call;
  if (row.other.starts_with("name=")) {
    other.name = Filled(row.other.substr(5));
  } else {
    other.body = Filled(row.other);
  }
  const HttpResponse reused = Do(method, other);
  EXPECT_EQ(Reason(reused), "REQUEST_ID_REUSED") << row.method << ": " << reused.body;
  EXPECT_EQ(reused.status, 409) << row.method;
}

// Pages of one item: a list continues where it ended, only for the same caller and query.
inline void AdminCalls::CheckPages(const MethodDescriptor& method, const MethodRow& row) {
  if (!row.items.empty()) {
    for (int i = 0; i < 2; ++i) Make(std::string(row.items));
  }
  Call call = CallOf(method, row);
  const auto ask = [&](const std::string& query) {
    call.query = query;
    return Do(method, call);
  };
  EXPECT_EQ(ask("page_size=-1").status, 400) << row.method;
  EXPECT_EQ(ask("page_size=0").status, 200) << row.method;
  EXPECT_EQ(ask("page_size=100000").status, 200) << row.method;
  EXPECT_EQ(ask("page_token=made-up").status, 400) << row.method;
  const FieldDescriptor* list = nullptr;
  for (int i = 0; i < method.output_type()->field_count(); ++i) {
    if (method.output_type()->field(i)->is_repeated()) list = method.output_type()->field(i);
  }
  ASSERT_NE(list, nullptr) << row.method;
  const HttpResponse first = ask("page_size=1");
  ASSERT_EQ(first.status, 200) << row.method << first.body;
  EXPECT_LE(first.json()[list->json_name()].size(), 1U) << row.method;
  const std::string token = first.json()["nextPageToken"].str();
  if (row.items.empty()) return;
  ASSERT_FALSE(token.empty()) << row.method << ": two were made, " << first.body;
  const HttpResponse second = ask("page_size=1&page_token=" + token);
  EXPECT_EQ(second.status, 200) << row.method << second.body;
  EXPECT_NE(second.json()[list->json_name()].Dump(), first.json()[list->json_name()].Dump())
      << row.method;
  const Route route = RouteOf(method);
  const std::string target =
      route.prefix + (route.variable.empty() ? "" : call.name + route.suffix);
  EXPECT_EQ(Other("GET", target + "?page_size=1").status, 200) << row.method;
  EXPECT_EQ(Other("GET", target + "?page_size=1&page_token=" + token).status, 400)
      << row.method << ": another caller's token";
  if (route.variable == "parent" && call.name == "workspaces/team") {
    call.name = "workspaces/acme";
    EXPECT_EQ(ask("page_size=1&page_token=" + token).status, 400)
        << row.method << ": another parent's token";
  }
}

}  // namespace tollgate::test
