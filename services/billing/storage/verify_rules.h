// What each kind of entry may look like, for the verification of the ledger.
#pragma once

#include "services/billing/domain/types.h"

namespace tollgate::billing {

bool IsKnownKind(EntryKind kind);
// Of a request; the others are of commands.
bool IsRequestKind(EntryKind kind);
// Of a lease.
bool IsLeaseKind(EntryKind kind);
// An entry beside those of a request or command: no hold and no command is made of it.
bool IsNote(const Entry& entry);
// Whether an entry of this kind may move money between these accounts.
bool MayMove(EntryKind kind, Account debit, Account credit);
// Whether entries of this kind carry a detail since details exist.
bool NeedsDetail(const Entry& entry);
// The kind of command that posts such entries, or 0 when several do (a freeze by a dispute).
int CommandKindOf(EntryKind kind);

}  // namespace tollgate::billing
