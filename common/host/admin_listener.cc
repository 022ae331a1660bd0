#include "common/host/admin_listener.h"

#include "common/host/process_metrics.h"
#include "common/http/server.h"
#include "common/json/writer.h"
#include "common/observability/metrics.h"

namespace tollgate::host {
namespace {

http::HttpResponse Text(int status, std::string_view type, std::string body) {
  return {
      .status = status, .headers = {{"content-type", std::string(type)}}, .body = std::move(body)};
}

http::HttpResponse Readiness(const AdminListener::ReadyReport& report) {
  bool all_ready = true;
  json::Writer parts;
  for (const auto& [name, ready] : report()) {
    all_ready = all_ready && ready;
    parts.Flag(name, ready);
  }
  const std::string body =
      json::Writer().Flag("ready", all_ready).Raw("parts", parts.Done()).Done() + "\n";
  return Text(all_ready ? 200 : 503, "application/json", body);
}

http::HttpResponse Answer(const http::HttpRequest& request, const std::string& process_name,
                          const AdminListener::ReadyReport& ready) {
  if (request.method != "GET") return Text(405, "text/plain", "only GET is supported\n");
  if (request.path == "/metrics") {
    UpdateProcessMetrics();
    return Text(200, "text/plain; version=0.0.4; charset=utf-8", metrics::Render());
  }
  if (request.path == "/healthz") return Text(200, "text/plain", "ok\n");
  if (request.path == "/readyz") return Readiness(ready);
  if (request.path == "/version") {
    return Text(200, "application/json", BuildInformationJson(process_name) + "\n");
  }
  return Text(404, "text/plain", "not found: use /metrics, /healthz, /readyz or /version\n");
}

}  // namespace

AdminListener::AdminListener(LoopPool& loops, std::string process_name, ReadyReport ready) {
  auto handle = [process_name = std::move(process_name),
                 ready = std::move(ready)](http::Exchange& exchange) -> Task<void> {
    co_await exchange.Send(Answer(exchange.request(), process_name, ready));
  };
  server_ = std::make_unique<http::Server>(loops, http::ServerOptions{.max_connections = 100},
                                           std::move(handle));
}

AdminListener::~AdminListener() = default;

Result<void> AdminListener::Listen(const std::string& address) { return server_->Listen(address); }
std::string AdminListener::address() const { return server_->address(); }
void AdminListener::Stop() { server_->Stop(); }

}  // namespace tollgate::host
