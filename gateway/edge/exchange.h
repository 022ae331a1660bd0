// One HTTP request and the answer to it, under the names that gateway code uses.
#pragma once

#include "common/http/exchange.h"

namespace tollgate::gateway {

using http::Exchange;
using http::Headers;
using http::HttpRequest;
using http::HttpResponse;

}  // namespace tollgate::gateway
