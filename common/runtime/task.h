// The coroutine type of the product and the socket and timer types that go with it. All of them
// name the event loop's executor type outright: a type-erased executor costs on every token.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace tollgate {

namespace asio = boost::asio;

using Executor = asio::io_context::executor_type;
// A coroutine that runs on one event loop from beginning to end.
template <typename T = void>
using Task = asio::awaitable<T, Executor>;
// Completion token: co_await socket.async_read_some(buffer, kUseTask).
inline constexpr asio::use_awaitable_t<Executor> kUseTask{};

using TcpSocket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using SteadyTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, Executor>;

}  // namespace tollgate
