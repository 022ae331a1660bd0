// Sends requests to one engine as an inference router does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "services/cli/doctor/check.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::cli {

struct EngineToAsk {
  config::v1::CatalogEngine engine;
  // A model that the engine must serve, by its name there, and its capabilities.
  struct Model {
    std::string name;
    bool chat = false;
    bool completion = false;
  };
  std::vector<Model> models;
  // router.engine_authority_file.
  std::string authority_file;
  int timeout_ms = 10'000;
  // Sends one request of one token for each model.
  bool generate = false;
};

Findings AskEngine(const EngineToAsk& asked);

}  // namespace tollgate::cli
