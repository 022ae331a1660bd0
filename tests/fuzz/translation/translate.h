// The product's way from an engine's bytes to canonical events: event stream reader, chunk reader
// and meter, put together as the inference router does it (services/inference_router/engine and
// session), without its sockets, money and clocks.
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

// The bytes arrive in random pieces. With cut_by_credit the money ends somewhere on the way, if the
// engine says enough.
Generation Translate(Random& random, const EngineBytes& engine, inference::v1::RequestKind kind,
                     int choices, bool cut_by_credit);

}  // namespace tollgate::fuzz
