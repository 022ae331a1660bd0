// One row for every method of tollgate.admin.v1: a call that succeeds, and what follows from it.
#pragma once

#include <span>
#include <string_view>

namespace tollgate::test {

struct MethodRow {
  std::string_view method;  // "KeyService/CreateKey"
  // What the path names: the resource, or the parent; "" where the path has no variable. {thing}
  // stands for a new one (admin_methods_test.cc, Make).
  std::string_view name;
  // The body that the HTTP rule takes, without request_id.
  std::string_view body = {};
  // Another body, for the same request_id. With "name=" before it, another name. Empty: the method
  // has no request_id.
  std::string_view other = {};
  // What the change is called in the audit log; "" for a method that changes nothing.
  std::string_view audit = {};
  // The reason for which the call is refused here, where a success is not possible.
  std::string_view fails = {};
  // Of a list: what is made twice, so that it has two pages.
  std::string_view items = {};
};

std::span<const MethodRow> MethodRows();
// Null: there is none.
const MethodRow* RowOf(std::string_view method);

}  // namespace tollgate::test
