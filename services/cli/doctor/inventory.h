// What the doctor is told of the installation: the configuration files, read as the programs read
// them.
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
  // Of a single service only its own section is set.
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

// paths: files, or folders whose *.yaml files are read. The catalog files that they name are read,
// too.
Inventory ReadInventory(const std::vector<std::string>& paths);

// An address to listen on as it is called from this machine: 0.0.0.0:80 is 127.0.0.1:80.
std::string CalledFromHere(const std::string& listen);
// "a:1, b:2" in its parts.
std::vector<std::string> SplitAddresses(const std::string& addresses);
// What CheckPlainText and the programs ask of host.tls: whether calls between processes use TLS.
bool UsesTls(const ServiceConfig& service);

}  // namespace tollgate::cli
