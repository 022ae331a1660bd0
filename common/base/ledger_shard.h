// The ledger shard of a workspace: the first column of every key of the ledger (decision 49), so
// that the same tables can be distributed over several databases. Clients that use several replicas
// of billing send the calls of a shard to one of them (docs/adr/0039).
#pragma once

#include <cstdint>
#include <string_view>

namespace tollgate {

inline constexpr int kLedgerShards = 1024;

// 0 to 1023: the first two bytes of the SHA-256 of the id, big-endian, modulo 1024. Stored rows
// depend on it: it never changes.
int32_t LedgerShard(std::string_view workspace);

}  // namespace tollgate
