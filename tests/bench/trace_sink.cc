// tollgate-trace-sink: a collector that discards the traces it receives, to measure what tracing
// costs the sending processes. Prints its address and exits when its standard input is closed.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdio>
#include <memory>

namespace {

// Every call is answered with an empty message, which means that all spans were accepted.
class Sink : public grpc::CallbackGenericService {
  class Call : public grpc::ServerGenericBidiReactor {
   public:
    Call() { StartRead(&request_); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::CANCELLED);
      const grpc::Slice empty;
      answer_ = grpc::ByteBuffer(&empty, 1);
      StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer request_, answer_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Call;
  }
};

}  // namespace

int main() {
  Sink sink;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&sink);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("127.0.0.1:%d\n", port);
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}
