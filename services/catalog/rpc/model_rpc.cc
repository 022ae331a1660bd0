#include "services/catalog/rpc/model_rpc.h"

#include <algorithm>
#include <vector>

#include "common/base/try.h"
#include "services/catalog/rpc/on_snapshot.h"

namespace tollgate::catalog {
namespace {

namespace pb = tollgate::admin::v1;
using admin::AdminResult;
using admin::Caller;

constexpr std::string_view kModelsPrefix = "models/";
constexpr std::string_view kCapability = "CAPABILITY_";

bool MaySee(const Caller& caller, const v1::Model& model) {
  return model.workspace_id().empty() || caller.installation || caller.platform_operator ||
         caller.roles.contains(model.workspace_id());
}

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

pb::Model ToAdmin(const v1::Model& model) {
  pb::Model to;
  to.set_name(std::string(kModelsPrefix) + model.id());
  to.set_display_name(model.display_name());
  to.set_description(model.description());
  to.set_context_window(model.context_window());
  to.set_max_output_tokens(model.max_output_tokens());
  // Pico-USD per token are micro-USD per million.
  to.set_input_usd_per_million(admin::FormatUsd(model.price().input_pico_usd() * 1000));
  to.set_output_usd_per_million(admin::FormatUsd(model.price().output_pico_usd() * 1000));
  for (const int capability : model.capabilities()) {
    to.add_capabilities(Lower(
        v1::Capability_Name(static_cast<v1::Capability>(capability)).substr(kCapability.size())));
  }
  to.set_documentation_url(model.documentation_url());
  if (model.created_at_s() > 0) {
    *to.mutable_create_time() = admin::ToTimestamp(model.created_at_s() * 1'000'000);
  }
  if (!model.workspace_id().empty()) to.set_workspace("workspaces/" + model.workspace_id());
  to.set_serving(model.serving());
  return to;
}

AdminResult<pb::Model> Get(const Caller& caller, const v1::Snapshot& snapshot,
                           const std::string& name) {
  const std::string_view id =
      std::string_view(name).substr(std::min(name.size(), kModelsPrefix.size()));
  if (!name.starts_with(kModelsPrefix) || id.empty()) {
    return admin::InvalidField("name", "a model's name is models/namespace/model");
  }
  for (const v1::Model& model : snapshot.models()) {
    if (model.id() == id && MaySee(caller, model)) return ToAdmin(model);
  }
  return admin::NotFound("there is no model " + std::string(id) + " in the catalog");
}

AdminResult<pb::ListModelsResponse> List(const Caller& caller, const v1::Snapshot& snapshot,
                                         const pb::ListModelsRequest& request) {
  TRY(auto page, admin::PageOfList(request, caller));
  std::vector<const v1::Model*> models;
  for (const v1::Model& model : snapshot.models()) {
    if (MaySee(caller, model) && model.id() > page.position) models.push_back(&model);
  }
  std::ranges::sort(models, {}, [](const v1::Model* model) { return model->id(); });
  pb::ListModelsResponse response;
  const auto size = std::min(models.size(), static_cast<size_t>(page.size));
  for (size_t i = 0; i < size; ++i) *response.add_models() = ToAdmin(*models[i]);
  if (size < models.size()) {
    response.set_next_page_token(admin::EncodePageToken(page.binding, models[size - 1]->id()));
  }
  return response;
}

}  // namespace

grpc::ServerUnaryReactor* ModelRpc::GetModel(grpc::CallbackServerContext* context,
                                             const pb::GetModelRequest* request,
                                             pb::Model* response) {
  return admin::Handle(context, request, response, OnSnapshot{publisher_},
                       [request](const v1::Snapshot& snapshot, const Caller& caller) {
                         return Get(caller, snapshot, request->name());
                       });
}

grpc::ServerUnaryReactor* ModelRpc::ListModels(grpc::CallbackServerContext* context,
                                               const pb::ListModelsRequest* request,
                                               pb::ListModelsResponse* response) {
  return admin::Handle(context, request, response, OnSnapshot{publisher_},
                       [request](const v1::Snapshot& snapshot, const Caller& caller) {
                         return List(caller, snapshot, *request);
                       });
}

}  // namespace tollgate::catalog
