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
  // What the change is called in the audit log; "" for a read.
  std::string_view audit = {};
  // Why a method that is no GET leaves nothing there.
  std::string_view no_audit_because = {};
  // Who the log says has done it, where it is not the caller.
  std::string_view actor = {};
  // Of a method without request_id: the reason for which a repetition is refused. "": it answers as
  // before, and does no harm.
  std::string_view again = {};
  // Of a list without pages: how many there can be.
  int at_most = 0;
  // Of a list: what is made twice, so that it has two pages.
  std::string_view items = {};
  // Needs a provider that keeps cards (admin_provider_test.cc).
  bool provider = false;
};

std::span<const MethodRow> MethodRows();
// Null: there is none.
const MethodRow* RowOf(std::string_view method);

}  // namespace tollgate::test
