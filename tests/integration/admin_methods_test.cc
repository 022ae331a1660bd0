// Every method of tollgate.admin.v1 through the dashboard's JSON front, on the real services: what
// its request must have, whether a repetition does it twice, how its pages go on, and what it
// leaves in the audit log. Methods come from the descriptors, calls from admin_methods_table.cc: a
// method without a row fails. Who may call is in people_roles_test.cc.
#include <google/api/annotations.pb.h>
#include <google/api/field_behavior.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>

#include <algorithm>
#include <set>

#include "tests/integration/admin_methods_table.h"
#include "tests/integration/admin_world.h"

namespace tollgate::test {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;

std::vector<const MethodDescriptor*> Methods() {
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
std::string NameOf(const MethodDescriptor& method) {
  return method.service()->name() + "/" + method.name();
}

bool Is(const FieldDescriptor& field, google::api::FieldBehavior wanted) {
  const auto& options = field.options();
  for (int i = 0; i < options.ExtensionSize(google::api::field_behavior); ++i) {
    if (options.GetExtension(google::api::field_behavior, i) == wanted) return true;
  }
  return false;
}

// The HTTP rule of a method, taken apart. Of a second binding nothing.
struct Route {
  std::string verb;      // "POST"
  std::string prefix;    // "/admin/v1/"
  std::string variable;  // "key.name"; "" for none
  std::string suffix;    // "/keys" or ":disable"
  std::string body;      // "*", "key" or ""
};
Route RouteOf(const MethodDescriptor& method) {
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

class AdminMethodsTest : public AdminWorld {
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
    return Admin("GET", "/admin/v1/auditEntries?page_size=1", "")
                   .json()["auditEntries"][0]["sequence"]
                   .str()
                   .empty()
               ? 0
               : std::stoll(Admin("GET", "/admin/v1/auditEntries?page_size=1", "")
                                .json()["auditEntries"][0]["sequence"]
                                .str());
  }
  // Whether the log has this action, with this id of the request, after the entry; billing's are
  // copied within seconds (decision 56).
  bool Audited(int64_t after, const std::string& action, const std::string& request_id,
               std::string& seen) {
    return WaitUntil(
        [&] {
          seen.clear();
          const Json page = Admin("GET", "/admin/v1/auditEntries?page_size=200", "").json();
          for (const Json& entry : page["auditEntries"].elements()) {
            if (std::stoll(entry["sequence"].str()) <= after) continue;
            const std::string id = entry["requestId"].str();
            if (entry["action"].str() == action && id == request_id) return true;
            seen += entry["action"].str() + " (" + id + ") ";
          }
          return false;
        },
        5'000, 50);
  }

  void CheckValidation(const MethodDescriptor& method, const MethodRow& row);
  void CheckMask(const MethodDescriptor& method, const MethodRow& row);
  void CheckSuccess(const MethodDescriptor& method, const MethodRow& row);
  void CheckPages(const MethodDescriptor& method, const MethodRow& row);
};
INSTANTIATE_TEST_SUITE_P(Stores, AdminMethodsTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

// A JSON object without one of its members.
std::string Without(const std::string& object, const std::string& member) {
  Json out = Json::Object();
  const Json in = Json::Parse(object).value_or(Json());
  for (const auto& [name, value] : in.members()) {
    if (name != member) out.Set(name, value);
  }
  return out.Dump();
}
std::string With(const std::string& object, const std::string& member, const Json& value) {
  Json out = Json::Parse(object).value_or(Json::Object());
  out.Set(member, value);
  return out.Dump();
}

// What a repeated call does not say again, or says as it is by then.
std::string Comparable(const HttpResponse& answer) {
  std::string text = answer.body;
  for (const char* member :
       {"secret", "secretShown", "signInPath", "acceptPath", "signingSecret", "state", "endTime",
        "workspaces", "entries", "holds", "usageRecords", "violations",
        // what an engine shows meanwhile
        "routers"}) {
    text = Without(text, member);
  }
  return text;
}

TEST_P(AdminMethodsTest, EveryMethodHasARowAndEveryRowAMethod) {
  std::set<std::string> names;
  for (const MethodDescriptor* method : Methods()) {
    names.insert(NameOf(*method));
    EXPECT_NE(RowOf(NameOf(*method)), nullptr) << NameOf(*method) << " has no row";
  }
  EXPECT_GT(names.size(), 80U);
  for (const MethodRow& row : MethodRows()) {
    EXPECT_TRUE(names.contains(std::string(row.method))) << row.method;
  }
}

// A call that lacks a required field, or whose name is none, changes nothing and is told which.
void AdminMethodsTest::CheckValidation(const MethodDescriptor& method, const MethodRow& row) {
  const Route route = RouteOf(method);
  const Call good = CallOf(method, row);
  const auto refused = [&](const Call& call, const std::string& what) {
    const HttpResponse answer = Do(method, call);
    EXPECT_EQ(answer.status, 400) << row.method << " " << what << ": " << answer.body;
    const Json json = answer.json();
    const Json& error = json.has("error") ? json["error"] : json;  // of a stream
    EXPECT_EQ(error["code"].integer(), 3) << row.method << " " << what << answer.body;
  };
  if (!route.variable.empty() && !good.name.starts_with("models/")) {
    Call bad = good;
    const size_t id = std::string_view("workspaces/").size();
    bad.name = good.name.starts_with("workspaces/")
                   ? "workspaces/TEAM!" +
                         good.name.substr(std::min(good.name.find('/', id), good.name.size()))
                   : good.name + "!";
    refused(bad, "with the name " + bad.name);
    // A verb that follows an empty part is no route.
    const bool has_id =
        std::ranges::count(good.name, '/') % 2 == 1 && good.name.starts_with("workspaces/");
    if (has_id && good.name.find('/', id) != std::string::npos && !route.suffix.starts_with(':')) {
      bad.name = good.name.substr(0, good.name.rfind('/') + 1);
      refused(bad, "with an empty last part");
    }
  }
  for (int i = 0; i < method.input_type()->field_count(); ++i) {
    const FieldDescriptor& field = *method.input_type()->field(i);
    if (!Is(field, google::api::REQUIRED)) continue;
    Call call = good;
    if (field.name() == "request_id") {
      call.request_id.clear();
    } else if (field.name() == route.variable || route.variable.starts_with(field.name() + ".")) {
      continue;  // in the path
    } else if (route.body == "*") {
      call.body = Without(good.body, field.json_name());
    } else {
      continue;  // the body: its own required fields are below
    }
    refused(call, "without " + field.name());
  }
  if (route.body.empty() || route.body == "*" || route.verb == "PATCH") return;
  const Descriptor& resource = *method.input_type()->FindFieldByName(route.body)->message_type();
  for (int i = 0; i < resource.field_count(); ++i) {
    const FieldDescriptor& field = *resource.field(i);
    if (!Is(field, google::api::REQUIRED)) continue;
    Call call = good;
    call.body = Without(good.body, field.json_name());
    refused(call, "without " + route.body + "." + field.name());
  }
}

TEST_P(AdminMethodsTest, RequiredFieldsAndNames) {
  for (const MethodDescriptor* method : Methods()) {
    if (const MethodRow* row = RowOf(NameOf(*method))) CheckValidation(*method, *row);
  }
}

// An update's mask names fields that may change; the others are refused there and ignored in
// bodies.
void AdminMethodsTest::CheckMask(const MethodDescriptor& method, const MethodRow& row) {
  const Route route = RouteOf(method);
  if (route.body.empty() || route.body == "*") return;
  const Descriptor& resource = *method.input_type()->FindFieldByName(route.body)->message_type();
  const bool masked = method.input_type()->FindFieldByName("update_mask") != nullptr;
  const Call good = CallOf(method, row);
  const auto refused = [&](const std::string& path) {
    Call call = good;
    call.query = "update_mask=" + path;
    if (!call.request_id.empty()) call.request_id = NewId();
    const HttpResponse answer = Do(method, call);
    EXPECT_EQ(answer.status, 400) << row.method << " with the mask " << path << answer.body;
  };
  if (masked) {
    for (const char* path : {"nope", "*", "name"}) refused(path);
  }
  Call call = good;
  if (!call.request_id.empty()) call.request_id = NewId();
  for (int i = 0; i < resource.field_count(); ++i) {
    const FieldDescriptor& field = *resource.field(i);
    if (!Is(field, google::api::OUTPUT_ONLY)) continue;
    if (masked) refused(field.name());
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && !field.is_repeated()) {
      call.body = With(call.body, field.json_name(), "made-up");
    }
  }
  if (!row.fails.empty()) return;
  if (masked) {  // what the front makes of a body with fields that cannot change is not the point
    const Json body = Json::Parse(good.body).value_or(Json());
    std::string paths;
    for (const auto& [name, value] : body.members()) paths += (paths.empty() ? "" : ",") + name;
    call.query = "update_mask=" + paths;
  }
  const HttpResponse answer = Do(method, call);
  EXPECT_EQ(answer.status, 200) << row.method << " with output-only fields: " << answer.body;
  EXPECT_EQ(answer.body.find("made-up"), std::string::npos) << row.method << answer.body;
}

TEST_P(AdminMethodsTest, MasksAndOutputOnlyFields) {
  for (const MethodDescriptor* method : Methods()) {
    if (const MethodRow* row = RowOf(NameOf(*method))) CheckMask(*method, *row);
  }
}

// What is done once is done once for a request id, is in the audit log, and reads leave no trace.
void AdminMethodsTest::CheckSuccess(const MethodDescriptor& method, const MethodRow& row) {
  const Call call = CallOf(method, row);
  const int64_t before = NewestAuditEntry();
  const HttpResponse first = Do(method, call);
  if (!row.fails.empty()) {
    EXPECT_EQ(Reason(first), row.fails) << row.method << ": " << first.status << first.body;
    return;
  }
  ASSERT_EQ(first.status, 200) << row.method << ": " << first.body;
  if (!row.audit.empty()) {
    std::string seen;
    EXPECT_TRUE(Audited(before, std::string(row.audit), call.request_id, seen))
        << row.method << " left no " << row.audit << " of " << call.request_id
        << " in the audit log, but: " << seen;
  }
  if (RouteOf(method).verb == "GET") EXPECT_TRUE(row.audit.empty()) << row.method;
  if (call.request_id.empty()) return;
  const HttpResponse again = Do(method, call);
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

TEST_P(AdminMethodsTest, ChangesAreAuditedAndDoneOnce) {
  for (const MethodDescriptor* method : Methods()) {
    if (const MethodRow* row = RowOf(NameOf(*method))) CheckSuccess(*method, *row);
  }
}

// Pages of one: a list goes on where it ended, for its own caller and its own question only.
void AdminMethodsTest::CheckPages(const MethodDescriptor& method, const MethodRow& row) {
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

TEST_P(AdminMethodsTest, PagesOfLists) {
  int lists = 0;
  for (const MethodDescriptor* method : Methods()) {
    const MethodRow* row = RowOf(NameOf(*method));
    if (row == nullptr || method->input_type()->FindFieldByName("page_size") == nullptr) continue;
    CheckPages(*method, *row);
    ++lists;
  }
  EXPECT_GT(lists, 10);
}

}  // namespace
}  // namespace tollgate::test
