// The commands, added to the parser: each runs when the parser has chosen it.
#pragma once

namespace CLI {
class App;
}

namespace tollgate::cli {

class Session;

// workspace create|list, key create|list|disable|enable|revoke, audit.
void AddAuthCommands(CLI::App& app, Session& session);
// credit add, cap set, balance, entries, verify-ledger.
void AddBillingCommands(CLI::App& app, Session& session);

}  // namespace tollgate::cli
