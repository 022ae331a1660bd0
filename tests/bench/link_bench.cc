// CPU cost of one token on the shared token stream: client and server in one process, without
// engines and clients. Usage: tollgate-link-bench [streams] [tokens per stream] [tokens per second
// and stream]
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "common/base/clock.h"
#include "common/clients/link_client.h"
#include "common/rpc/channel.h"
#include "common/runtime/notify.h"
#include "common/runtime/testing/run_coro.h"
#include "services/inference_router/rpc/link_server.h"

namespace tollgate {
namespace {

using inference::v1::GenerateRequest;
// `Event` is the synchronization primitive of common/runtime/notify.h.
using TokenEvent = inference::v1::Event;

int64_t CpuUs() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * int64_t{1'000'000} +
         usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

// Sends max_tokens tokens, one every `choices` milliseconds; as fast as possible if that is 0.
Task<void> Produce(GenerateRequest request, std::shared_ptr<inference_router::EventSink> sink) {
  Loop& loop = *Loop::Current();
  int64_t gap_ms = request.choices();
  if (gap_ms > 0) co_await loop.Sleep(std::rand() % gap_ms);
  for (int64_t i = 0; i < request.max_tokens(); ++i) {
    TokenEvent event;
    event.mutable_delta()->set_content_json(" tokens of text");
    if (!co_await sink->Send(std::move(event))) co_return;
    if (gap_ms > 0) co_await loop.Sleep(gap_ms);
  }
  TokenEvent end;
  end.mutable_end();
  co_await sink->Send(std::move(end));
}

struct Totals {
  int64_t tokens = 0;
  int64_t wakeups = 0;
  int open = 0;
};

Task<void> Consume(std::unique_ptr<Generation> generation, Totals& totals,
                   ::tollgate::Event& done) {
  for (bool ended = false; !ended;) {
    auto events = co_await generation->Next();
    if (!events.ok()) {
      std::fprintf(stderr, "link failed: %s\n", events.error().ToString().c_str());
      std::exit(1);
    }
    ++totals.wakeups;
    for (const auto& event : *events) {
      if (event.has_delta()) ++totals.tokens;
      ended = ended || event.has_end();
    }
  }
  if (--totals.open == 0) done.Set();
}

void Measure(const char* name, std::shared_ptr<grpc::Channel> channel, Loop& gateway, int streams,
             int64_t tokens, int gap_ms) {
  testing::RunOn(gateway, [&](Loop& loop) -> Task<int> {
    auto client = MakeLinkClient(loop, {channel});
    co_await loop.Sleep(100);
    Totals totals;
    totals.open = streams;
    ::tollgate::Event done(loop);
    int64_t start_us = SystemClock::Get().MonotonicUs();
    int64_t start_cpu = CpuUs();
    for (int i = 0; i < streams; ++i) {
      GenerateRequest request;
      request.set_max_tokens(tokens);
      request.set_choices(gap_ms);
      loop.Spawn(Consume(client->Start(std::move(request)), totals, done));
    }
    co_await done.Wait();
    double cpu_us = static_cast<double>(CpuUs() - start_cpu);
    double wall_us = static_cast<double>(SystemClock::Get().MonotonicUs() - start_us);
    double count = static_cast<double>(totals.tokens);
    std::printf(
        "%-10s %5d streams %9.0f tokens  %9.0f tokens/s  %6.2f us CPU/token  %5.2f "
        "tokens/wake-up\n",
        name, streams, count, count / wall_us * 1e6, cpu_us / count,
        count / static_cast<double>(totals.wakeups));
    co_return 0;
  });
}

}  // namespace
}  // namespace tollgate

int main(int argc, char** argv) {
  using namespace tollgate;
  int streams = argc > 1 ? std::atoi(argv[1]) : 1000;
  int64_t tokens = argc > 2 ? std::atoll(argv[2]) : 500;
  int per_second = argc > 3 ? std::atoi(argv[3]) : 50;
  LoopPool router(1);
  LoopPool gateway(1);
  router.Start();
  gateway.Start();
  auto link = inference_router::LinkServer::Make(router, Produce);
  grpc::ServerBuilder builder;
  rpc::ConfigureServer(builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(link->service());
  auto server = builder.BuildAndStart();
  rpc::ChannelSource channels;
  channels.SetServers(server.get());
  std::string tcp = "127.0.0.1:" + std::to_string(port);
  std::printf("unpaced\n");
  Measure("in process", channels.Channel("inproc:", "inference-router"), gateway.loop(0), streams,
          tokens, 0);
  Measure("TCP", channels.Channel(tcp, "inference-router"), gateway.loop(0), streams, tokens, 0);
  std::printf("%d tokens/s per stream\n", per_second);
  int64_t paced = std::min<int64_t>(tokens, per_second * 5);
  Measure("in process", channels.Channel("inproc:", "inference-router"), gateway.loop(0), streams,
          paced, 1000 / per_second);
  Measure("TCP", channels.Channel(tcp, "inference-router"), gateway.loop(0), streams, paced,
          1000 / per_second);
  server->Shutdown(std::chrono::system_clock::now());
}
