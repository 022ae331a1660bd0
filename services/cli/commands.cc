#include "services/cli/commands.h"

namespace tollgate::cli {

std::vector<Command> AllCommands() {
  std::vector<Command> all;
  for (const auto part : {WorkspaceCommands, KeyCommands, AuditCommands, CreditCommands,
                          AdjustmentCommands, UsageCommands, LedgerCommands, StatementCommands,
                          DeadLetterCommands, PaymentCommands, AlertCommands, UserCommands}) {
    for (Command& command : part()) all.push_back(std::move(command));
  }
  return all;
}

}  // namespace tollgate::cli
