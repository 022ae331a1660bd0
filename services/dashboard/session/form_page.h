// Small pages with one form, for links that people get by mail or from an operator. Opening one
// changes nothing: mail scanners and browsers that fetch links ahead use nothing up, and another
// site's page cannot sign a visitor in. The form is sent to the page's own address. No scripts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/http/exchange.h"

namespace tollgate::dashboard {

struct FormField {
  const char* name;
  const char* label;
  const char* type;          // of the HTML input
  const char* autocomplete;  // what a browser may fill in
};

struct FormPage {
  std::string_view path;  // below /session/v1/
  const char* title;
  const char* lead;
  const char* button;
  // The hidden field, from the query's parameter of the same name.
  const char* secret;
  // The page of the web application that does the same; null: there is none.
  const char* web_path;
  std::vector<FormField> fields;
};

// Null: there is no such page.
const FormPage* FindFormPage(std::string_view path);

// The address of web_path, with the secret behind the #: browsers send that to nobody.
std::string WebAddress(const FormPage& page, std::string_view secret);

// secret: the hidden field's value. problem: what was wrong with the last try; empty: nothing.
http::HttpResponse RenderFormPage(const FormPage& page, std::string_view secret, int status = 200,
                                  std::string_view problem = "");

// The first value of a name in a query or an application/x-www-form-urlencoded body; empty: there
// is none.
std::string ParameterOf(std::string_view query, std::string_view name);

}  // namespace tollgate::dashboard
