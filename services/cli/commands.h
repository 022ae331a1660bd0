// The table of commands; each part is in the file of its name.
#pragma once

#include <vector>

#include "services/cli/command.h"

namespace CLI {
class App;
}

namespace tollgate::cli {

std::vector<Command> WorkspaceCommands();
std::vector<Command> KeyCommands();
std::vector<Command> AuditCommands();
std::vector<Command> CreditCommands();      // credit, cap, balance
std::vector<Command> AdjustmentCommands();  // adjustment, workspace freeze and unfreeze
std::vector<Command> UsageCommands();       // transactions, usage, receipt
std::vector<Command> LedgerCommands();      // clock, entries, verify-ledger, ledger
std::vector<Command> StatementCommands();
std::vector<Command> DeadLetterCommands();
std::vector<Command> PaymentCommands();  // payment, reload, reconcile
std::vector<Command> AlertCommands();    // alert, webhook
std::vector<Command> UserCommands();     // user, operator

// All of them, in the order of `tollgate --help`.
std::vector<Command> AllCommands();

// Adds `doctor`, which calls no admin API.
void AddDoctorCommand(CLI::App& app, Invocation& invocation);

}  // namespace tollgate::cli
