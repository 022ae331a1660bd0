// The hash chain that makes a changed, missing or added entry evident.
#pragma once

#include <string>
#include <string_view>

#include "services/billing/domain/types.h"

namespace tollgate::billing {

// SHA-256 over the previous hash and a fixed binary encoding of every field but the hash. Changing
// the encoding invalidates every existing ledger.
std::string EntryHash(std::string_view previous, const Entry& entry);

// The details of entries (Entry::detail): 32 bytes each, over a fixed encoding. They bring under
// the chain what balances do not show. Of a hold's first entry: time, key, model, rates, price
// version, bounds, cap, quota, surface, and the same of each further model that may answer.
std::string AdmissionDetail(const Hold& hold);
// Of a terminal entry and of a late correction: usage, outcome, engine, flags, and which of several
// models has answered.
std::string ClosingDetail(const Hold& hold);
// Of the entries of a command: every field that its sender gave.
std::string CommandDetail(const Command& command);

}  // namespace tollgate::billing
