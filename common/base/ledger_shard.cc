#include "common/base/ledger_shard.h"

#include <string>

#include "common/base/crypto.h"
#include "common/base/memo.h"

namespace tollgate {

namespace {

int32_t ShardOf(std::string_view workspace) {
  const std::string digest = Sha256(workspace);
  const int first = static_cast<unsigned char>(digest[0]);
  const int second = static_cast<unsigned char>(digest[1]);
  return (first << 8 | second) % kLedgerShards;
}

}  // namespace

int32_t LedgerShard(std::string_view workspace) {
  // A request needs the shard of its workspace for about ten rows.
  thread_local Memo<int32_t> shards;
  return shards.Get(workspace, ShardOf);
}

}  // namespace tollgate
