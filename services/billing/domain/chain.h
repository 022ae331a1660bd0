// The hash chain, which reveals changed, missing or added entries.
#pragma once

#include <string>
#include <string_view>

#include "services/billing/domain/types.h"

namespace tollgate::billing {

// SHA-256 over the previous hash and a fixed binary encoding of every field except the hash.
// Changing the encoding invalidates every existing ledger.
std::string EntryHash(std::string_view previous, const Entry& entry);

// Details of entries (Entry::detail): 32 bytes each, over a fixed encoding. They let the hash chain
// cover what balances do not show. AdmissionDetail, for the first entry of a hold, covers time,
// key, model, rates, price version, bounds, cap, quota, surface, and model, rates and bounds of
// each further candidate.
std::string AdmissionDetail(const Hold& hold);
// Detail of a terminal entry and of a late correction: usage, outcome, engine, flags, and which of
// several models has answered.
std::string ClosingDetail(const Hold& hold);
// Detail of the entries of a command: every field that its sender gave.
std::string CommandDetail(const Command& command);

}  // namespace tollgate::billing
