// The ledger shard of a workspace: the first column of every key of the ledger (decision 49), so
// that the tables can be distributed over several databases. Clients of several billing replicas
// send all calls of a shard to the same replica (docs/adr/0039).
#pragma once

#include <cstdint>
#include <string_view>

namespace tollgate {

inline constexpr int kLedgerShards = 1024;

// 0 to 1023: the first two bytes of the SHA-256 of the id, big-endian, modulo 1024. Never change
// it: stored rows depend on it.
int32_t LedgerShard(std::string_view workspace);

}  // namespace tollgate
