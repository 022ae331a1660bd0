// A mail server for tests: speaks enough SMTP over plain TCP on the loopback, keeps received mails,
// and can fail on request.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tollgate::mail {

class SmtpListener {
 public:
  struct Mail {
    std::string from;
    std::vector<std::string> to;
    std::string text;
  };

  explicit SmtpListener(in_addr_t on = INADDR_LOOPBACK)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(on);
    socklen_t size = sizeof address;
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(socket_, 16) != 0 ||
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Main(); });
  }
  ~SmtpListener() {
    stopping_ = true;
    thread_.join();
    close(socket_);
  }
  SmtpListener(const SmtpListener&) = delete;
  SmtpListener& operator=(const SmtpListener&) = delete;

  std::string url(const std::string& host = "127.0.0.1") const {
    return "smtp://" + host + ":" + std::to_string(port_);
  }
  // Refuses the next `count` receivers with 451.
  void Refuse(int count) { refuse_ = count; }
  std::vector<Mail> mails() const {
    const std::lock_guard lock(mutex_);
    return mails_;
  }
  // All commands, in order.
  std::vector<std::string> commands() const {
    const std::lock_guard lock(mutex_);
    return commands_;
  }

 private:
  bool Wait(int fd) const {
    while (!stopping_) {
      pollfd one{fd, POLLIN, 0};
      if (poll(&one, 1, 20) > 0) return true;
    }
    return false;
  }
  void Main() {
    while (Wait(socket_)) {
      const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) continue;
      Serve(client);
      close(client);
    }
  }
  static void Say(int client, const std::string& line) {
    const std::string text = line + "\r\n";
    static_cast<void>(send(client, text.data(), text.size(), MSG_NOSIGNAL));
  }
  bool ReadLine(int client, std::string& buffer, std::string& line) const {
    for (;;) {
      if (const size_t end = buffer.find("\r\n"); end != std::string::npos) {
        line = buffer.substr(0, end);
        buffer.erase(0, end + 2);
        return true;
      }
      char bytes[4096];
      if (!Wait(client)) return false;
      const ssize_t count = recv(client, bytes, sizeof bytes, 0);
      if (count <= 0) return false;
      buffer.append(bytes, static_cast<size_t>(count));
    }
  }
  void Serve(int client) {
    std::string buffer, line;
    Mail mail;
    Say(client, "220 test");
    while (ReadLine(client, buffer, line)) {
      {
        const std::lock_guard lock(mutex_);
        commands_.push_back(line);
      }
      if (line.starts_with("MAIL FROM:")) {
        mail = {line.substr(10), {}, ""};
        Say(client, "250 ok");
      } else if (line.starts_with("RCPT TO:")) {
        if (refuse_.fetch_sub(1) > 0) {
          Say(client, "451 later");
        } else {
          refuse_ = 0;
          mail.to.push_back(line.substr(8));
          Say(client, "250 ok");
        }
      } else if (line == "DATA") {
        Say(client, "354 go on");
        while (ReadLine(client, buffer, line) && line != ".") mail.text += line + "\r\n";
        {
          const std::lock_guard lock(mutex_);
          mails_.push_back(mail);
        }
        Say(client, "250 taken");
      } else if (line == "QUIT") {
        return Say(client, "221 bye");
      } else {
        Say(client,
            line.starts_with("EHLO") || line.starts_with("HELO") ? "250 test" : "500 unknown");
      }
    }
  }

  const int socket_;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> refuse_ = 0;
  mutable std::mutex mutex_;
  std::vector<Mail> mails_;
  std::vector<std::string> commands_;
  std::thread thread_;
};

}  // namespace tollgate::mail
