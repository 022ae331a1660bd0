#include <algorithm>

#include "services/cli/doctor/engine_probe.h"
#include "services/cli/doctor/probe.h"
#include "tollgate/admin/v1/catalog_status.grpc.pb.h"
#include "tollgate/admin/v1/engines.grpc.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = admin::v1;

std::vector<EngineToAsk::Model> ModelsOf(const config::v1::CatalogFile& file,
                                         const std::string& pool) {
  std::vector<EngineToAsk::Model> models;
  for (const auto& model : file.models()) {
    if (model.pool() != pool) continue;
    const std::string& name = model.engine_model().empty() ? model.id() : model.engine_model();
    EngineToAsk::Model asked{.name = name};
    for (const std::string& capability : model.capabilities()) {
      asked.chat = asked.chat || capability == "chat";
      asked.completion = asked.completion || capability == "completion";
    }
    const auto same = std::ranges::find_if(
        models, [&](const EngineToAsk::Model& other) { return other.name == name; });
    if (same == models.end()) {
      models.push_back(std::move(asked));
    } else {
      same->chat = same->chat || asked.chat;
      same->completion = same->completion || asked.completion;
    }
  }
  return models;
}

constexpr char kEngineRunbook[] =
    "its last failure and the engine's log say why (docs/runbooks/EngineDown.md)";

Finding Judge(const pb::Engine& engine) {
  const std::string subject = engine.name().substr(engine.name().find('/') + 1) + " at the routers";
  std::string failure;
  for (const pb::EngineAtRouter& router : engine.routers()) {
    if (!router.healthy() && !router.last_failure().empty()) failure = ": " + router.last_failure();
  }
  const std::string load =
      std::to_string(engine.running_requests()) + " requests" +
      (engine.max_requests() > 0 ? " of at most " + std::to_string(engine.max_requests()) : "");
  if (engine.silent_routers_size() > 0) {
    return Failure(subject, "the router " + engine.silent_routers(0) + " did not answer",
                   "start it, or correct targets.router_admin of the dashboard");
  }
  switch (engine.state()) {
    case pb::ENGINE_STATE_UP:
      return Ok(subject, "up, " + load);
    case pb::ENGINE_STATE_PARTLY_UP:
      return Warning(subject, "down at some of the routers" + failure, kEngineRunbook);
    case pb::ENGINE_STATE_DRAINED:
      return Warning(subject, "drained: it gets no requests", "resume it when it is repaired");
    default:
      return Failure(subject, "down" + failure, kEngineRunbook);
  }
}

// Finding for a call that failed.
Findings Refused(const std::string& subject, const grpc::Status& status) {
  return {Skipped(subject, "cannot be asked: " + status.error_message(),
                  "see the findings about its address")};
}

Findings AskRouters(const std::string& address, const std::string& service,
                    const DoctorOptions& options) {
  const std::string subject = "engines by " + service + " at " + address;
  const auto channel = OpenChannel(options, address, service);
  if (!channel.ok()) return {Skipped(subject, channel.error())};
  grpc::ClientContext context;
  PrepareCall(options, context);
  pb::ListEnginesRequest request;
  request.set_page_size(200);
  pb::ListEnginesResponse response;
  const grpc::Status status =
      pb::EngineService::NewStub(*channel)->ListEngines(&context, request, &response);
  if (!status.ok()) return Refused(subject, status);
  Findings findings;
  for (const pb::Engine& engine : response.engines()) findings.push_back(Judge(engine));
  if (findings.empty()) {
    findings.push_back(Failure(subject, "the routers have no engines", "see the catalog file"));
  }
  return findings;
}

Findings AskCatalog(const std::string& address, const std::string& service,
                    const DoctorOptions& options) {
  const std::string subject = "catalog file as " + service + " at " + address + " has it";
  const auto channel = OpenChannel(options, address, service);
  if (!channel.ok()) return {Skipped(subject, channel.error())};
  grpc::ClientContext context;
  PrepareCall(options, context);
  pb::CatalogStatus answer;
  const grpc::Status status =
      pb::CatalogStatusService::NewStub(*channel)->GetCatalogStatus(&context, {}, &answer);
  if (!status.ok()) return Refused(subject, status);
  Findings findings;
  for (const std::string& problem : answer.problems()) {
    findings.push_back(Failure(subject, problem,
                               "correct the line; until then the file from before is served "
                               "(docs/runbooks/CatalogFileRefused.md)"));
  }
  if (findings.empty()) {
    findings.push_back(Ok(subject, std::to_string(answer.models()) + " models, " +
                                       std::to_string(answer.engines()) + " engines, accepted"));
  }
  return findings;
}

// First admin address of a service, from the command line, a target or its own configuration.
std::string AdminAddress(const Inventory& inventory, const DoctorOptions& options,
                         const std::string& service) {
  for (const auto& target : options.targets) {
    if (target.service == service) return target.address;
  }
  for (const ServiceConfig& one : inventory.services) {
    const std::string& target = one.config.targets().catalog_admin();
    if (service == "catalog" && !target.empty() && !target.starts_with("inproc")) {
      return SplitAddresses(target).front();
    }
  }
  for (const ServiceConfig& one : inventory.services) {
    const auto own = SplitAddresses(one.config.host().admin_grpc_listen());
    if (one.service == service && !own.empty()) return CalledFromHere(own.back());
  }
  return "";
}

}  // namespace

void AddEngineChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks) {
  std::string authority_file;
  for (const ServiceConfig& service : inventory.services) {
    if (!service.config.router().engine_authority_file().empty()) {
      authority_file = service.config.router().engine_authority_file();
    }
  }
  for (const CatalogConfig& catalog : inventory.catalogs) {
    for (const auto& pool : catalog.file.pools()) {
      for (const auto& engine : pool.engines()) {
        EngineToAsk asked{.engine = engine,
                          .models = ModelsOf(catalog.file, pool.name()),
                          .authority_file = authority_file,
                          .timeout_ms = options.timeout_ms,
                          .generate = options.ask_engines};
        checks.push_back({"engine", engine.id(), [asked] { return AskEngine(asked); }});
      }
    }
  }
  // The dashboard collects the routers' view of engines; the all-in-one contains all three
  // services.
  for (const char* service : {"dashboard", "catalog", "allinone"}) {
    const std::string address = AdminAddress(inventory, options, service);
    if (address.empty()) continue;
    const std::string name = service;
    if (name != "catalog") {
      checks.push_back(
          {"engine", "engines by " + name, [=] { return AskRouters(address, name, options); }});
    }
    if (name != "dashboard") {
      checks.push_back({"engine", "catalog file by " + name,
                        [=] { return AskCatalog(address, name, options); }});
    }
  }
}

}  // namespace tollgate::cli
