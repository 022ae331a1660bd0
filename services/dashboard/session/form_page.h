// Small pages with one form, for links from mails or operators. Opening a page changes nothing, so
// mail scanners and prefetching browsers do not use links up, and another site cannot sign a
// visitor in. The form is sent to the page's own address. No scripts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/http/exchange.h"

namespace tollgate::dashboard {

struct FormField {
  const char* name;
  const char* label;
  const char* type;          // type of the HTML input
  const char* autocomplete;  // autocomplete hint for browsers
};

struct FormPage {
  std::string_view path;  // below /session/v1/
  const char* title;
  const char* lead;
  const char* button;
  // Name of the hidden field, and of the query parameter with its value.
  const char* secret;
  // Page of the web application that does the same; null if there is none.
  const char* web_path;
  std::vector<FormField> fields;
};

// Null if there is no such page.
const FormPage* FindFormPage(std::string_view path);

// Address of web_path with the secret after "#", which browsers do not send to servers.
std::string WebAddress(const FormPage& page, std::string_view secret);

// secret: value of the hidden field. problem: error of the last attempt; empty: none.
http::HttpResponse RenderFormPage(const FormPage& page, std::string_view secret, int status = 200,
                                  std::string_view problem = "");

// First value of a name in a query or an application/x-www-form-urlencoded body; empty if there is
// none.
std::string ParameterOf(std::string_view query, std::string_view name);

}  // namespace tollgate::dashboard
