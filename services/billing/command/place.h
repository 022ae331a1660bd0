// Which database a command works on. Internal to the commands.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct Place {
  std::string url;
  std::string config;
};

void AddPlace(CLI::App& command, Place& place);
// Prints the message. Returns the exit code.
int Failed(const std::string& message);
// Returns an empty string if no database is named.
std::string UrlOf(const Place& place);
// Returns null and sets the exit code if the database cannot be opened.
std::unique_ptr<sql::Connection> Connect(const std::string& url, bool read_only, int* exit_code);
std::unique_ptr<sql::Connection> Connect(const Place& place, bool read_only, int* exit_code);

// Parses "YYYY-MM" to YYYYMM; 0: not a month.
int32_t ParseMonth(const std::string& text);

// archived_command.cc
void AddArchived(CLI::App& app, int& exit_code);
// verify_command.cc
void AddVerify(CLI::App& app, int& exit_code);

}  // namespace tollgate::billing
