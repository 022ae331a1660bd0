// Adds rows of the table of commands to the parser, and executes the selected one.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "services/cli/command.h"

namespace CLI {
class App;
}

namespace tollgate::cli {

void AddCommands(CLI::App& app, Invocation& invocation, const std::vector<Command>& commands);

void Run(Invocation& invocation, const Command& command, Arguments arguments);

// The table of one message, or of more.
Table TableOf(const std::vector<Shown>& shown);
std::vector<Cell> RowOf(const std::vector<Shown>& shown, const google::protobuf::Message& message,
                        const Arguments& arguments = {});

}  // namespace tollgate::cli
