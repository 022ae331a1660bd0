// The kinds of checks. Each function adds the checks that apply to the installation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "services/cli/doctor/check.h"
#include "services/cli/doctor/inventory.h"

namespace tollgate::cli {

using Checks = std::vector<Check>;

struct DoctorOptions {
  // An address of a service that the configuration does not contain, and the service.
  struct Target {
    std::string service;
    std::string address;
    bool is_admin = true;
  };
  std::vector<Target> targets;
  // Certificate of the operator; empty: plain text, or unix sockets.
  config::v1::TlsConfig tls;
  // Name of the operator for calls over unix sockets.
  std::string operator_name;
  int timeout_ms = 10'000;
  // Sends one request of one token to each engine and model.
  bool ask_engines = false;
};

// Versions that processes report, for the version check, which comes last.
class Versions;

// configuration: files are well-formed, no address is in plain text without permission, secrets are
// long enough and not readable by other users, and the named files and folders exist.
void AddConfigurationChecks(const Inventory& inventory, Checks& checks);
// certificate: of host.tls, edge_tls and the operator.
void AddCertificateChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);
// process and clock: each address can be reached and has the certificate of the expected service;
// the process is ready, and its clock is right.
std::shared_ptr<Versions> AddProcessChecks(const Inventory& inventory, const DoctorOptions& options,
                                           Checks& checks);
// One finding: whether all processes that answered have the same version.
Line VersionLine(const Versions& versions);
// database: auth's and billing's.
void AddDatabaseChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);
// redis: ratelimit's.
void AddRedisChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);
// machine: file descriptors, kernel settings, disks.
void AddMachineChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);
// engine: engines of the catalog files as seen from here, and as the inference routers see them.
void AddEngineChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks);

}  // namespace tollgate::cli
