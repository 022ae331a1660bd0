// Every method of tollgate.admin.v1 through the dashboard's JSON front, on the real services:
// required fields, repetition, pages and the audit log. Methods come from the descriptors, calls
// from admin_methods_table.cc: a method without a row fails. Permissions are tested in
// people_roles_test.cc.

#include <set>

#include "tests/integration/admin_calls.h"

namespace tollgate::test {
namespace {

class AdminMethodsTest : public AdminCalls {
 protected:
  void CheckValidation(const MethodDescriptor& method, const MethodRow& row);
  void CheckMask(const MethodDescriptor& method, const MethodRow& row);
};
INSTANTIATE_TEST_SUITE_P(Stores, AdminMethodsTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

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

// A call without a required field, or with a malformed name, changes nothing and gets an error that
// names the field.
void AdminMethodsTest::CheckValidation(const MethodDescriptor& method, const MethodRow& row) {
  const Route route = RouteOf(method);
  const Call good = CallOf(method, row);
  const auto refused = [&](const Call& call, const std::string& what) {
    const HttpResponse answer = Do(method, call);
    EXPECT_EQ(answer.status, 400) << row.method << " " << what << ": " << answer.body;
    const Json json = answer.json();
    const Json& error =
        json.has("error") ? json["error"] : json;  // the error is wrapped in a stream
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
    // A verb after an empty path segment does not match any route.
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
      continue;  // set in the path
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
    const MethodRow* row = RowOf(NameOf(*method));
    if (row != nullptr && !row->provider) CheckValidation(*method, *row);
  }
}

// The mask of an update names fields that may change; other fields are refused in the mask and
// ignored in bodies.
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
  if (masked) {  // bodies with immutable fields are not tested here
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
    const MethodRow* row = RowOf(NameOf(*method));
    if (row != nullptr && !row->provider) CheckMask(*method, *row);
  }
}

TEST_P(AdminMethodsTest, ChangesAreAuditedAndDoneOnce) {
  for (const MethodDescriptor* method : Methods()) {
    const MethodRow* row = RowOf(NameOf(*method));
    if (row != nullptr && !row->provider) CheckSuccess(*method, *row);
  }
}

TEST_P(AdminMethodsTest, PagesOfLists) {
  int lists = 0;
  for (const MethodDescriptor* method : Methods()) {
    const MethodRow* row = RowOf(NameOf(*method));
    if (row == nullptr) continue;
    if (method->input_type()->FindFieldByName("page_size") == nullptr) {
      // A list may omit pages only if it is short by design: its comment and a test state the
      // bound.
      EXPECT_TRUE(!method->name().starts_with("List") || row->at_most > 0) << row->method;
      continue;
    }
    if (!row->provider) CheckPages(*method, *row);
    ++lists;
  }
  EXPECT_GT(lists, 10);
}

// Methods without pages: the number of items is bounded, and the list shows all of them.
TEST_P(AdminMethodsTest, ListsWithoutPagesAreBounded) {
  const auto count = [&](const std::string& path, const std::string& list) {
    return Admin("GET", "/admin/v1/" + path, "").json()[list].size();
  };
  for (int i = 0; i < 101; ++i) {
    Post("users/me/tokens?request_id=" + NewId(),
         Filled(R"({"displayName":"a","scopes":["viewer"],"expireTime":"{soon}"})"));
  }
  EXPECT_EQ(count("users/me/tokens", "tokens"), 100U);
  for (int i = 0; i < 11; ++i) {
    Post("workspaces/team/webhooks?request_id=" + NewId(),
         R"({"url":"https://hooks.example.com/)" + std::to_string(i) + "\"}");
  }
  EXPECT_EQ(count("workspaces/team/webhooks", "webhooks"), 10U);
}

}  // namespace
}  // namespace tollgate::test
