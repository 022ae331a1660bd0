// JSON over HTTP for gRPC services with google.api.http options, driven by their descriptors,
// compatible with a generated grpc-gateway (docs/design/transcoder.md). Does not depend on sessions
// or the dashboard.
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

// Services of a package that are linked into this program, ordered by file name, then by
// declaration.
std::vector<const google::protobuf::ServiceDescriptor*> ServicesOf(std::string_view package);

class Transcoder {
 public:
  // Returns the channel to a service for calls on this loop.
  using ChannelTo = std::function<std::shared_ptr<grpc::Channel>(
      const google::protobuf::ServiceDescriptor& service, Loop& loop)>;
  struct Options {
    // Larger bodies are refused; grpc-gateway has no limit.
    size_t max_body_bytes = 1 << 20;
    // For calls without Grpc-Timeout; grpc-gateway has no default.
    int64_t default_timeout_ms = 60'000;
    int64_t default_stream_timeout_ms = 3'600'000;
    // Added to every response.
    http::Headers response_headers;
  };
  Transcoder(RouteTable routes, ChannelTo channel_to, Options options);

  // Serves a request. own: additional metadata with keys that clients cannot set.
  Task<void> Serve(http::Exchange& exchange, Metadata own = {}) const;

  // The response to a failure that does not come from a service. details may hold a serialized
  // google.rpc.Status.
  http::HttpResponse Refusal(const grpc::Status& status) const;
  // The response to a request that could not be read.
  http::HttpResponse Refusal(const Error& error) const;

  const RouteTable& routes() const { return routes_; }

 private:
  class Call;
  const RouteTable routes_;
  const ChannelTo channel_to_;
  const Options options_;
};

// Same mapping as grpc-gateway's.
int HttpStatusOf(int code);

}  // namespace tollgate::transcode
