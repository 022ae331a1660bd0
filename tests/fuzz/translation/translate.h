// The product's path from an engine's bytes to canonical events: event stream reader, chunk reader
// and meter, connected as in the inference router (services/inference_router/engine and run),
// without sockets, ledger and clocks.
#pragma once

#include <optional>
#include <vector>

#include "common/error/error.h"
#include "tests/fuzz/translation/engine_bytes.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::fuzz {

struct Generation {
  std::vector<inference::v1::Event> events;  // Started and deltas
  inference::v1::End end;                    // when there is no error
  std::optional<Error> error;
  bool cut_by_credit = false;
};

// The bytes arrive in random pieces. With cut_by_credit the credit is exhausted at a random point,
// if the output is long enough.
Generation Translate(Random& random, const EngineBytes& engine, inference::v1::RequestKind kind,
                     int choices, bool cut_by_credit);

}  // namespace tollgate::fuzz
