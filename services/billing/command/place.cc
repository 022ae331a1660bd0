#include "services/billing/command/place.h"

#include <cstdio>

#include "common/config/config.h"
#include "common/sql/beside.h"
#include "services/billing/verify/verify_process.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::billing {

void AddPlace(CLI::App& command, Place& place) {
  auto* url = command
                  .add_option("--database", place.url,
                              "The ledger's database: sqlite:/path or postgresql://…")
                  ->envname(kLedgerDatabaseVariable);
  command
      .add_option("--config", place.config,
                  "Instead: the configuration file of billing or of the all-in-one")
      ->excludes(url);
}

int Failed(const std::string& message) {
  std::fprintf(stderr, "tollgate-billing: %s\n", message.c_str());
  return 1;
}

std::string UrlOf(const Place& place) {
  std::string found = place.url;
  if (!place.config.empty()) {
    config::v1::BillingConfig billing;
    config::v1::AllInOneConfig all;
    if (auto loaded = config::LoadFile(place.config, billing); loaded.ok()) {
      found = billing.billing().sql().url();
    } else if (config::LoadFile(place.config, all).ok()) {
      found = all.billing().sql().url();
    } else {
      Failed(loaded.error());
      return "";
    }
  }
  if (found.empty()) Failed("--database URL or --config FILE is required");
  return found;
}

std::unique_ptr<sql::Connection> Connect(const std::string& url, bool read_only, int* exit_code) {
  *exit_code = 2;
  if (url.empty()) return nullptr;
  *exit_code = 1;
  auto connection = sql::ConnectBeside(url, read_only);
  if (!connection.ok()) {
    Failed(connection.error().message);
    return nullptr;
  }
  *exit_code = 0;
  return std::move(*connection);
}

std::unique_ptr<sql::Connection> Connect(const Place& place, bool read_only, int* exit_code) {
  return Connect(UrlOf(place), read_only, exit_code);
}

int32_t ParseMonth(const std::string& text) {
  if (text.size() != 7 || text[4] != '-') return 0;
  int32_t month = 0;
  for (const char c : text.substr(0, 4) + text.substr(5)) {
    if (c < '0' || c > '9') return 0;
    month = month * 10 + (c - '0');
  }
  return month % 100 >= 1 && month % 100 <= 12 ? month : 0;
}

}  // namespace tollgate::billing
