// JSON over HTTP for gRPC services whose methods have google.api.http options, from their
// descriptors, as a generated grpc-gateway serves it (docs/design/transcoder.md). Knows nothing of
// sessions or of the dashboard.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/error/error.h"
#include "common/http/exchange.h"
#include "services/dashboard/transcode/headers.h"
#include "services/dashboard/transcode/routes.h"

namespace grpc {
class Channel;
class Status;
}  // namespace grpc

namespace tollgate::transcode {

// The services of a package that are linked into this program, in the order of their files' names,
// then of their declaration.
std::vector<const google::protobuf::ServiceDescriptor*> ServicesOf(std::string_view package);

class Transcoder {
 public:
  // The channel to a service, for calls from this loop.
  using ChannelTo = std::function<std::shared_ptr<grpc::Channel>(
      const google::protobuf::ServiceDescriptor& service, Loop& loop)>;
  struct Options {
    // Larger bodies are refused; grpc-gateway has no limit.
    size_t max_body_bytes = 1 << 20;
    // Of calls without Grpc-Timeout; grpc-gateway has none.
    int64_t default_timeout_ms = 60'000;
    int64_t default_stream_timeout_ms = 3'600'000;
    // Added to every response.
    http::Headers response_headers;
  };
  Transcoder(RouteTable routes, ChannelTo channel_to, Options options);

  // Serves a request. own: metadata that the front itself adds; clients cannot set these keys.
  Task<void> Serve(http::Exchange& exchange, Metadata own = {}) const;

  // The response to a failure that no service has answered with. details may hold a serialised
  // google.rpc.Status.
  http::HttpResponse Refusal(const grpc::Status& status) const;
  // The same for a request that could not be read.
  http::HttpResponse Refusal(const Error& error) const;

  const RouteTable& routes() const { return routes_; }

 private:
  class Call;
  const RouteTable routes_;
  const ChannelTo channel_to_;
  const Options options_;
};

// As grpc-gateway maps them.
int HttpStatusOf(int code);

}  // namespace tollgate::transcode
