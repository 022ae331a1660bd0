// tollgate-catalog: models, prices and engine pools as a separate process.
#include "common/host/host.h"
#include "services/catalog/catalog_module.h"

int main(int argc, char** argv) {
  return tollgate::host::Main<tollgate::config::v1::CatalogConfig>(
      argc, argv, "catalog", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules modules;
        modules.push_back(tollgate::MakeCatalogModule(context, config.catalog()));
        return modules;
      });
}
