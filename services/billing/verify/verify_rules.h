// What entries of each kind may look like, for the verification of the ledger.
#pragma once

#include "services/billing/domain/types.h"

namespace tollgate::billing {

bool IsKnownKind(EntryKind kind);
// Whether the entry belongs to a request. Most others belong to a command.
bool IsRequestKind(EntryKind kind);
// Whether the entry belongs to a lease.
bool IsLeaseKind(EntryKind kind);
// Whether the entry only accompanies a request or command: no hold or command is derived from it.
bool IsNote(const Entry& entry);
// Whether an entry of this kind may move money between these accounts.
bool MayMove(EntryKind kind, Account debit, Account credit);
// Whether entries of this kind have had a detail since details were introduced.
bool NeedsDetail(const Entry& entry);
// Kind of command that posts such entries, or 0 if several do (a freeze by a dispute).
int CommandKindOf(EntryKind kind);

}  // namespace tollgate::billing
