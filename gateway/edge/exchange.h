// Names of common/http/exchange.h for gateway code.
#pragma once

#include "common/http/exchange.h"

namespace tollgate::gateway {

using http::Exchange;
using http::Headers;
using http::HttpRequest;
using http::HttpResponse;

}  // namespace tollgate::gateway
