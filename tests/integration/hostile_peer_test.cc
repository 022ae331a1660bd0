// H80 of docs/design/hostile-inputs.md: a peer that may connect to a process's gRPC address abuses
// HTTP/2. The process stays small and serves other peers.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr int64_t kUsd = 1'000'000'000;
constexpr uint8_t kHeaders = 1, kResetStream = 3, kSettings = 4, kContinuation = 9;
constexpr uint8_t kEndHeaders = 4;
// Bound on the memory growth that one peer can cause.
constexpr int64_t kMoreMemory = int64_t{64} << 20;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  const auto size = static_cast<uint32_t>(payload.size());
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(size >> shift);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
  return frame + payload;
}

// A literal header, added to the receiver's table or not.
std::string Literal(const std::string& name, const std::string& value, bool indexed) {
  const auto text = [](const std::string& of) {
    std::string out;
    size_t left = of.size();
    if (left < 127) return std::string(1, static_cast<char>(left)) + of;
    out += static_cast<char>(127);
    for (left -= 127; left >= 128; left /= 128) out += static_cast<char>(left % 128 + 128);
    return out + static_cast<char>(left) + of;
  };
  return std::string(1, static_cast<char>(indexed ? 0x40 : 0x00)) + text(name) + text(value);
}

// The beginning of every call: :method POST, :scheme http, and the path of a method.
std::string Call() { return "\x83\x86" + Literal(":path", "/grpc.health.v1.Health/Check", false); }

// A connection that starts as a gRPC client does. Received bytes are discarded.
class Peer {
 public:
  explicit Peer(const std::string& address) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::atoi(&address[address.rfind(':') + 1])));
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const timeval patience{60, 0};
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    EXPECT_TRUE(Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, "")));
    reader_ = std::thread([this] {
      char bytes[65536];
      while (recv(socket_, bytes, sizeof bytes, 0) > 0) {
      }
    });
  }
  ~Peer() {
    shutdown(socket_, SHUT_RDWR);
    reader_.join();
    close(socket_);
  }
  // Returns false when the server has closed the connection or no longer reads.
  bool Send(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<size_t>(sent);
    }
    return true;
  }

 private:
  int socket_;
  std::thread reader_;
};

int64_t MemoryOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class HostilePeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.all_in_one = false;
    options.catalog = DefaultCatalog({engine_.base_url()});
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
    key_ = cluster_->NewCustomer(kUsd);
    ASSERT_EQ(Chat(), 200);
  }
  void TearDown() override {
    if (cluster_) EXPECT_EQ(cluster_->StopOrderly(), "");
  }
  int Chat() {
    return cluster_
        ->Post(key_, "/v1/chat/completions",
               R"({"model":"sim/model","max_tokens":3,"messages":[{"role":"user","content":"a"}]})")
        .status;
  }
  // Runs the attack on each process that has callers, while requests continue.
  template <typename Attack>
  void Each(const Attack& attack) {
    for (const std::string process : {"billing", "auth", "ratelimit", "inference-router"}) {
      SCOPED_TRACE(process);
      const int64_t before = MemoryOf(cluster_->process(process).pid());
      std::atomic<bool> stop{false};
      // On a busy machine a call inside may reach its deadline, which is a 503.
      std::atomic<int> served{0}, unavailable{0}, failed{0};
      std::thread beside([&] {
        while (!stop) {
          const int status = Chat();
          ++(status == 200 ? served : status == 503 ? unavailable : failed);
        }
      });
      int64_t most = before;
      Peer peer(cluster_->grpc_address(process));
      attack(peer, [&] {
        most = std::max(most, MemoryOf(cluster_->process(process).pid()));
        return most - before < kMoreMemory;
      });
      EXPECT_TRUE(WaitUntil([&] { return served > unavailable; }, 20'000)) << "others are served";
      stop = true;
      beside.join();
      EXPECT_EQ(failed, 0);
      EXPECT_LT(most - before, kMoreMemory);
      EXPECT_TRUE(cluster_->process(process).Running());
    }
  }

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
  ApiKey key_;
};

TEST_F(HostilePeerTest, StreamsThatAreResetAtOnceCostLittle) {
  Each([](Peer& peer, const auto& small) {
    uint32_t stream = 1;
    for (int batch = 0; batch < 200 && small(); ++batch) {
      std::string bytes;
      for (int i = 0; i < 100; ++i, stream += 2) {
        bytes += Frame(kHeaders, kEndHeaders, stream, Call()) +
                 Frame(kResetStream, 0, stream, std::string("\0\0\0\x08", 4));
      }
      if (!peer.Send(bytes)) break;
    }
  });
}

// gRPC 1.51 buffers the bytes of a header block until its end, without a limit (docs/design/keys.md
// 8): memory grows by the bytes that a peer sends, and by no more.
TEST_F(HostilePeerTest, HeadersThatNeverEndCostNoMoreThanTheirBytes) {
  Each([](Peer& peer, const auto& small) {
    std::string more;
    for (int i = 0; i < 16; ++i) {
      more += Literal("x-" + std::to_string(i), std::string(900, 'v'), false);
    }
    const std::string frame = Frame(kContinuation, 0, 1, more);
    ASSERT_TRUE(peer.Send(Frame(kHeaders, 0, 1, Call())));
    for (size_t sent = 0; sent < kMoreMemory / 2 && peer.Send(frame); sent += frame.size()) {
      EXPECT_TRUE(small());
    }
  });
}

// Refers to one large entry of the table again and again, with one byte each.
TEST_F(HostilePeerTest, HeadersThatGrowWhenTheyAreReadAreRefused) {
  Each([](Peer& peer, const auto& small) {
    const std::string entry = Literal("x", std::string(3'000, 'v'), true);
    uint32_t stream = 1;
    for (int i = 0; i < 400 && small(); ++i, stream += 2) {  // 400 × 48 MB
      if (!peer.Send(Frame(kHeaders, kEndHeaders, stream,
                           Call() + entry + std::string(12'000, static_cast<char>(0x80 | 62))))) {
        break;
      }
    }
  });
}

}  // namespace
}  // namespace tollgate::test
