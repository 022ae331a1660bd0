// The hash chain that makes a changed, missing or added entry evident.
#pragma once

#include <string>
#include <string_view>

#include "services/billing/domain/types.h"

namespace tollgate::billing {

// SHA-256 over the previous hash and a fixed binary encoding of every field but the hash. Changing
// the encoding invalidates every existing ledger.
std::string EntryHash(std::string_view previous, const Entry& entry);

}  // namespace tollgate::billing
