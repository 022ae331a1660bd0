// Adds commands to the parser, which runs the callback of the selected one.
#pragma once

namespace CLI {
class App;
}

namespace tollgate::cli {

class Invocation;

// workspace create|list|open|close|reopen.
void AddAuthCommands(CLI::App& app, Invocation& invocation);
// key create|update|list|disable|enable|revoke|rotate|import|report-leak.
void AddKeyCommands(CLI::App& app, Invocation& invocation);
// audit, audit verify|export.
void AddAuditCommands(CLI::App& app, Invocation& invocation);
// clock repair, entries, verify-ledger, ledger archive, statement, statement list.
void AddBillingCommands(CLI::App& app, Invocation& invocation);
// credit add|grant|status, cap set, balance.
void AddCreditCommands(CLI::App& app, Invocation& invocation);
// adjustment create|list|approve|reject, workspace freeze|unfreeze.
void AddAdjustmentCommands(CLI::App& app, Invocation& invocation);
// transactions, usage, receipt.
void AddUsageCommands(CLI::App& app, Invocation& invocation);
// deadletter list|retry|writeoff.
void AddDeadLetterCommands(CLI::App& app, Invocation& invocation);
// payment list|create|confirm|cancel|refund|methods|setup, reload show|set|resume, reconcile.
void AddPaymentCommands(CLI::App& app, Invocation& invocation);
// alert show|set, webhook list|create|delete|test.
void AddAlertCommands(CLI::App& app, Invocation& invocation);
// user list|create|invite|link|disable|enable, operator list|create.
void AddUserCommands(CLI::App& app, Invocation& invocation);

// doctor.
void AddDoctorCommand(CLI::App& app, Invocation& invocation);

}  // namespace tollgate::cli
