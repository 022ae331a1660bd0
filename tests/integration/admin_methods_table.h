// One row for every method of tollgate.admin.v1: a call that succeeds, and its expected effects.
#pragma once

#include <span>
#include <string_view>

namespace tollgate::test {

struct MethodRow {
  std::string_view method;  // "KeyService/CreateKey"
  // Resource or parent in the path; "" for a path without a variable. {thing} stands for a new one
  // (admin_methods_test.cc, Make).
  std::string_view name;
  // Body of the HTTP rule, without request_id.
  std::string_view body = {};
  // Another body for the same request_id, or with "name=" before it another name. Empty: the method
  // has no request_id.
  std::string_view other = {};
  // Action of the change in the audit log; "" for a read.
  std::string_view audit = {};
  // The reason why a method other than GET writes no audit entry.
  std::string_view no_audit_because = {};
  // Actor of the audit entry, where it is not the caller.
  std::string_view actor = {};
  // Methods without request_id: the reason with which a repetition is refused. "": a repetition
  // succeeds and changes nothing.
  std::string_view again = {};
  // Lists without pages: the largest possible number of items.
  int at_most = 0;
  // Lists: the kind of resource that is created twice, so that there are two pages.
  std::string_view items = {};
  // The method needs a provider that stores cards (admin_provider_test.cc).
  bool provider = false;
};

std::span<const MethodRow> MethodRows();
// nullptr: the method has no row.
const MethodRow* RowOf(std::string_view method);

}  // namespace tollgate::test
