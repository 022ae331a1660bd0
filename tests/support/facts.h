// Describes a running Tollgate for scripts and for tests against an address: keys in every state.
#pragma once

#include "tests/support/cluster.h"
#include "tests/support/json.h"

namespace tollgate::test {

// Creates the customers and returns
//   {"port":…,"dashboard_port":…,"model":"sim/model","simulated":true,"keys":{"good":…,…},
//    "small_credit":["…",…],"workspaces":{"good":…},"admin":{"auth":…,…}}
// admin: the gRPC addresses of the admin services, by process.
// Keys: good; broke (no credit); capped (the month's cap is reached); over_quota (the
// key's monthly quota is reached); disabled; revoked; narrow
// (allowed to use sim/text only); limited (30 requests a minute, one at a time); one_a_minute
// (requests); few_tokens (500 a minute). small_credit: keys of 20 workspaces with 0.001 USD each,
// for answers that use it up.
Json MakeFacts(Cluster& cluster, int64_t credit_usd);

}  // namespace tollgate::test
