#include "services/inference_router/admin/engine_admin_rpc.h"

#include <algorithm>
#include <string>

#include "common/base/try.h"
#include "common/engines/kinds.h"
#include "common/observability/log.h"

namespace tollgate::inference_router {
namespace {

void Fill(const EngineState& engine, int64_t now_us, inference::v1::EngineReport& into) {
  into.set_id(engine.id());
  into.set_kind(std::string(engines::Of(engine.engine().kind()).name));
  into.set_healthy(engine.Healthy(now_us));
  into.set_drained(engine.drained());
  into.set_running(engine.running());
  into.set_max_concurrency(engine.engine().max_concurrency());
  into.set_health_check_us(engine.health_check_us());
  into.set_first_output_us(engine.first_output_us());
  EngineState::Failure failure = engine.last_failure();
  into.set_last_failure_us(failure.wall_us);
  into.set_last_failure(std::move(failure.text));
}

}  // namespace

grpc::ServerUnaryReactor* EngineAdminRpc::ReadEngines(
    grpc::CallbackServerContext* context, const inference::v1::ReadEnginesRequest*,
    inference::v1::ReadEnginesResponse* response) {
  const auto table = table_();
  if (table == nullptr) return rpc::Answer(context, Unavailable("the router has no catalog yet"));
  const int64_t now_us = clock_.MonotonicUs();
  for (size_t i = 0; i < table->engines().size(); ++i) {
    inference::v1::EngineReport& report = *response->add_engines();
    Fill(*table->engines()[i], now_us, report);
    report.set_pool(table->pools()[i]);
    for (std::string& model : table->ModelsOf(report.pool())) report.add_models(std::move(model));
  }
  return rpc::Answer(context, {});
}

grpc::ServerUnaryReactor* EngineAdminRpc::SetDrain(grpc::CallbackServerContext* context,
                                                   const inference::v1::SetDrainRequest* request,
                                                   inference::v1::SetDrainResponse* response) {
  return rpc::ServeBlocking(context, writers_, [=, this]() -> Result<void> {
    const auto table = table_();
    if (table == nullptr) return Unavailable("the router has no catalog yet");
    const bool known = std::ranges::any_of(table->engines(), [&](const EnginePointer& engine) {
      return engine->id() == request->engine_id();
    });
    response->set_known(known);
    if (!known) return {};
    TRY(drained_.Set(request->engine_id(), request->drained()));
    // The catalog may have changed meanwhile.
    drained_.Mark(*table_(), clock_.MonotonicUs());
    log::Info(request->drained() ? "engine drained" : "engine resumed",
              {{"engine", request->engine_id()}});
    return {};
  });
}

}  // namespace tollgate::inference_router
