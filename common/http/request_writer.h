// Writes the heads of requests with Beast's fields and serializer. Internal to common/http.
#pragma once

#include <string>

#include "common/http/client.h"

namespace tollgate::http {

// The head of the request. The body is sent from its place, so a long prompt is not copied. Empty
// if a header exceeds the limit of Beast (64 KiB).
std::string WriteRequestHead(const ClientRequest& request);

}  // namespace tollgate::http
