// The installation as the doctor knows it: the configuration files, read as the programs read them.
#pragma once

#include <string>
#include <vector>

#include "services/cli/doctor/check.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::cli {

struct ServiceConfig {
  std::string path;
  // auth, billing, catalog, dashboard, gateway, inference-router, ratelimit or allinone.
  std::string service;
  // For a single service, only its own section is set.
  config::v1::AllInOneConfig config;
};

struct CatalogConfig {
  std::string path;
  config::v1::CatalogFile file;
};

struct Inventory {
  std::vector<ServiceConfig> services;
  std::vector<CatalogConfig> catalogs;
  // One finding for each file.
  Findings reading;
};

// paths: files, or folders whose *.yaml files are read. Catalog files that they name are read, too.
Inventory ReadInventory(const std::vector<std::string>& paths);

// The address at which this machine reaches a listen address: 0.0.0.0:80 becomes 127.0.0.1:80.
std::string CalledFromHere(const std::string& listen);
// Splits "a:1, b:2".
std::vector<std::string> SplitAddresses(const std::string& addresses);
// Whether calls between processes use TLS, according to host.tls; the same rule as
// CheckPlainText's.
bool UsesTls(const ServiceConfig& service);

}  // namespace tollgate::cli
