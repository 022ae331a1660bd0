// The transcoder alone, in front of a backend: tollgate-test-front BACKEND-ADDRESS. Serves the
// admin API's services and those of everything.proto, prints its address, and exits when its
// standard input is closed.
#include <grpcpp/channel.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>

#include "common/http/server.h"
#include "common/rpc/channel.h"
#include "common/runtime/loop.h"
#include "services/dashboard/transcode/transcoder.h"

int main(int argc, char** argv) {
  using namespace tollgate;  // NOLINT: a program of its own
  if (argc != 2) {
    std::fprintf(stderr, "usage: tollgate-test-front BACKEND-ADDRESS\n");
    return 2;
  }
  auto services = transcode::ServicesOf("tollgate.admin.v1");
  for (const auto* service : transcode::ServicesOf("tollgate.testing.v1")) {
    services.push_back(service);
  }
  auto routes = transcode::RouteTable::Make(services);
  if (!routes.ok()) {
    std::fprintf(stderr, "%s\n", routes.error().c_str());
    return 1;
  }
  LoopPool loops(2);
  rpc::ChannelSource channels;
  std::vector<std::shared_ptr<grpc::Channel>> by_loop;
  for (int i = 0; i < loops.size(); ++i) by_loop.push_back(channels.Channel(argv[1], "backend"));
  loops.Start();
  const transcode::Transcoder transcoder(
      std::move(*routes),
      [&](const google::protobuf::ServiceDescriptor&, Loop& loop) { return by_loop[loop.index()]; },
      {});
  http::ServerOptions options;
  options.max_head_bytes = 64 * 1024;
  options.max_target_bytes = 32 * 1024;
  options.max_body_bytes = 1 << 20;
  options.render_error = [&](const Error& error, const http::HttpRequest&) {
    return transcoder.Refusal(error);
  };
  http::Server server(loops, std::move(options),
                      [&](http::Exchange& exchange) { return transcoder.Serve(exchange); });
  if (auto listening = server.Listen("127.0.0.1:0"); !listening) {
    std::fprintf(stderr, "%s\n", listening.error().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", server.address().c_str());
  std::fflush(stdout);
  char byte;
  while (::read(0, &byte, 1) > 0) {
  }
  server.Stop();
  loops.loop(0).RunAndWait([&] { by_loop.clear(); });
  loops.Stop();
  return 0;
}
