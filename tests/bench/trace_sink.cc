// tollgate-trace-sink: a collector of traces that throws away what it gets, for measuring what
// tracing costs the processes that send. Prints its address, and ends when its standard input does.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdio>
#include <memory>

namespace {

// Every call is answered with an empty message, which is "all taken".
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
