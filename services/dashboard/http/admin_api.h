// /admin/v1/: identifies the caller and refuses requests of other sites' pages. The transcoder does
// the rest, and the services check permissions (common/admin/access.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/clients/factory.h"
#include "services/dashboard/http/credential.h"
#include "services/dashboard/transcode/transcoder.h"

namespace tollgate::dashboard {

inline constexpr std::string_view kAdminApiPath = "/admin/v1/";

// The process that serves the service (the option home in its proto); nullopt: none.
std::optional<AdminTarget> TargetOf(const google::protobuf::ServiceDescriptor& service);

class AdminApi {
 public:
  struct Options {
    std::string public_url;  // the dashboard's address; see IsSameOrigin
    transcode::Transcoder::ChannelTo channel_to;
  };
  // Fails with the error in the protos' options.
  static Result<std::unique_ptr<AdminApi>> Make(CredentialSource& credentials, Options options);

  Task<void> Serve(http::Exchange& exchange);
  // The response to a request that could not be read.
  http::HttpResponse RenderError(const Error& error) const { return transcoder_.Refusal(error); }

 private:
  AdminApi(CredentialSource& credentials, Options options, transcode::RouteTable routes);
  // Returns why the request must not be served with this credential.
  std::optional<grpc::Status> Judge(const http::HttpRequest& request,
                                    const std::optional<Credential>& credential) const;

  CredentialSource& credentials_;
  const std::string public_url_;
  const transcode::Transcoder transcoder_;
};

}  // namespace tollgate::dashboard
