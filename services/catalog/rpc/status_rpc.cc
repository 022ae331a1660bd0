#include "services/catalog/rpc/status_rpc.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/base/try.h"
#include "services/catalog/rpc/on_snapshot.h"

namespace tollgate::catalog {
namespace {

namespace pb = tollgate::admin::v1;
using admin::AdminResult;
using admin::Caller;

constexpr size_t kMaxProblems = 100;
constexpr size_t kMaxProblemBytes = 500;
constexpr std::string_view kStatusPrefix = "models/";

bool HasLimit(const v1::Capacity& capacity) {
  return capacity.requests_per_minute() > 0 || capacity.tokens_per_minute() > 0 ||
         capacity.concurrent_requests() > 0;
}

void Fill(const v1::Model& model, pb::ModelCapacity& into) {
  into.set_name(std::string(kStatusPrefix) + model.id());
  pb::LimitValues& limits = *into.mutable_limits();
  limits.set_requests_per_minute(model.capacity().requests_per_minute());
  limits.set_tokens_per_minute(model.capacity().tokens_per_minute());
  limits.set_concurrent_requests(model.capacity().concurrent_requests());
  into.set_shadow(model.capacity().shadow());
}

AdminResult<pb::ListModelCapacityResponse> List(const Caller& caller, const v1::Snapshot& snapshot,
                                                const pb::ListModelCapacityRequest& request) {
  TRY(auto page, admin::PageOfList(request, caller));
  std::vector<const v1::Model*> models;
  for (const v1::Model& model : snapshot.models()) {
    if (HasLimit(model.capacity()) && model.id() > page.position) models.push_back(&model);
  }
  std::ranges::sort(models, {}, [](const v1::Model* model) { return model->id(); });
  pb::ListModelCapacityResponse response;
  const auto size = std::min(models.size(), static_cast<size_t>(page.size));
  for (size_t i = 0; i < size; ++i) Fill(*models[i], *response.add_capacities());
  if (size < models.size()) {
    response.set_next_page_token(admin::EncodePageToken(page.binding, models[size - 1]->id()));
  }
  return response;
}

}  // namespace

void StatusRpc::Loaded(bool anew) {
  const std::lock_guard lock(mutex_);
  if (anew) load_us_ = clock_.WallUs();
  problems_.clear();
  refuse_us_ = 0;
}

void StatusRpc::Refused(const std::vector<std::string>& problems) {
  const std::lock_guard lock(mutex_);
  problems_.clear();
  for (const std::string& problem : problems) {
    if (problems_.size() == kMaxProblems) break;
    problems_.push_back(ToValidUtf8(problem, kMaxProblemBytes));
  }
  refuse_us_ = clock_.WallUs();
}

grpc::ServerUnaryReactor* StatusRpc::GetCatalogStatus(grpc::CallbackServerContext* context,
                                                      const pb::GetCatalogStatusRequest* request,
                                                      pb::CatalogStatus* response) {
  return admin::Handle(context, request, response, OnSnapshot{publisher_},
                       [this](const v1::Snapshot& snapshot, const Caller&) {
                         pb::CatalogStatus status;
                         status.set_version(snapshot.version());
                         status.set_digest(snapshot.digest());
                         status.set_models(snapshot.models_size());
                         status.set_pools(snapshot.pools_size());
                         int engines = 0;
                         for (const v1::Pool& pool : snapshot.pools())
                           engines += pool.engines_size();
                         status.set_engines(engines);
                         const std::lock_guard lock(mutex_);
                         *status.mutable_load_time() = admin::ToTimestamp(load_us_);
                         for (const std::string& problem : problems_) status.add_problems(problem);
                         if (refuse_us_ > 0) {
                           *status.mutable_refuse_time() = admin::ToTimestamp(refuse_us_);
                         }
                         return AdminResult<pb::CatalogStatus>(std::move(status));
                       });
}

grpc::ServerUnaryReactor* StatusRpc::ListModelCapacity(grpc::CallbackServerContext* context,
                                                       const pb::ListModelCapacityRequest* request,
                                                       pb::ListModelCapacityResponse* response) {
  return admin::Handle(context, request, response, OnSnapshot{publisher_},
                       [request](const v1::Snapshot& snapshot, const Caller& caller) {
                         return List(caller, snapshot, *request);
                       });
}

}  // namespace tollgate::catalog
