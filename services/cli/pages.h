#pragma once

#include <functional>
#include <string>

#include "services/cli/invocation.h"

namespace tollgate::cli {

// Calls `each` for all pages until it returns false. Returns false if a call failed.
template <typename Response, typename Request>
bool EachPage(Invocation& invocation, const std::string& method, Request request,
              const std::function<bool(const Response&)>& each) {
  request.set_page_size(200);
  do {
    Response page;
    if (!invocation.Call(method, request, page)) return false;
    if (!each(page)) break;
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return true;
}

}  // namespace tollgate::cli
