#include "services/billing/domain/shard.h"

#include <string>

#include "common/base/crypto.h"

namespace tollgate::billing {

int32_t LedgerShard(std::string_view workspace) {
  const std::string digest = Sha256(workspace);
  const int first = static_cast<unsigned char>(digest[0]);
  const int second = static_cast<unsigned char>(digest[1]);
  return (first << 8 | second) % kLedgerShards;
}

}  // namespace tollgate::billing
