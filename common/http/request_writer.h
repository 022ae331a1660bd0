// Writes the heads of requests with Beast's fields and serializer. Internal to common/http.
#pragma once

#include <string>

#include "common/http/client.h"

namespace tollgate::http {

// The head of the request. Its body is sent from where it is: a long prompt is not copied. Empty if
// a header exceeds what Beast can hold (64 KiB).
std::string WriteRequestHead(const ClientRequest& request);

}  // namespace tollgate::http
