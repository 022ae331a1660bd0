// The checks by kind. Each function adds those that the installation gives reason for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "services/cli/doctor/check.h"
#include "services/cli/doctor/inventory.h"

namespace tollgate::cli {

using Checks = std::vector<Check>;

struct DoctorOptions {
  // Addresses of services beside those of the configuration: service and target.
  struct Target {
    std::string service;
    std::string address;
    bool is_admin = true;
  };
  std::vector<Target> targets;
  // The operator's certificate; empty: plain text, and unix sockets.
  config::v1::TlsConfig tls;
  // What the operator is called over unix sockets.
  std::string operator_name;
  int timeout_ms = 10'000;
  // Sends one request of one token to each engine and model.
  bool ask_engines = false;
};

// What processes say of themselves, for the check of versions, which comes last.
class Versions;

// configuration: the files are well-formed, no address is plain text unasked, secrets are long
// enough and not readable by others, files and folders that it names are there.
void AddConfigurationChecks(const Inventory& inventory, Checks& checks);
// certificate: of host.tls, edge_tls and the operator.
void AddCertificateChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);
// process and clock: each address is reached, with the certificate of the service that is expected
// there; what answers is ready, and its clock is right.
std::shared_ptr<Versions> AddProcessChecks(const Inventory& inventory, const DoctorOptions& options,
                                           Checks& checks);
// One finding: all that answered are of one version.
Line VersionLine(const Versions& versions);
// database: of auth and billing.
void AddDatabaseChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);
// redis: of ratelimit.
void AddRedisChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);
// machine: file descriptors, kernel settings, disks.
void AddMachineChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);
// engine: of the catalog files, asked from here; and as the inference routers see them.
void AddEngineChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);

}  // namespace tollgate::cli
