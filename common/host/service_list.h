// Finds out which services a gRPC server has, whoever registered them.
#pragma once

#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/impl/server_initializer.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <vector>

namespace tollgate::host {

// Full names of the services of the builder's server. BuildAndStart fills the list.
inline std::shared_ptr<const std::vector<std::string>> CollectServices(
    grpc::ServerBuilder& builder) {
  using Names = std::vector<std::string>;
  class Plugin : public grpc::ServerBuilderPlugin {
   public:
    explicit Plugin(std::shared_ptr<Names> names) : names_(std::move(names)) {}
    std::string name() override { return "service_list"; }
    void InitServer(grpc::ServerInitializer*) override {}
    void Finish(grpc::ServerInitializer* server) override { *names_ = *server->GetServiceList(); }
    void ChangeArguments(const std::string&, void*) override {}

   private:
    const std::shared_ptr<Names> names_;
  };
  class Option : public grpc::ServerBuilderOption {
   public:
    explicit Option(std::shared_ptr<Names> names) : names_(std::move(names)) {}
    void UpdateArguments(grpc::ChannelArguments*) override {}
    void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
      plugins->push_back(std::make_unique<Plugin>(names_));
    }

   private:
    const std::shared_ptr<Names> names_;
  };
  auto names = std::make_shared<Names>();
  builder.SetOption(std::make_unique<Option>(names));
  return names;
}

}  // namespace tollgate::host
