// The coroutine type, and the socket and timer types for it. All of them name the executor type of
// the event loop. Asio's default, the type-erased any_io_executor, costs time on every operation,
// so for every token.
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
// A lazy coroutine: it starts when it is awaited or spawned (Loop::Spawn), and runs on one event
// loop from start to end.
template <typename T = void>
using Task = asio::awaitable<T, Executor>;
// The completion token that makes an Asio operation awaitable in a Task:
// co_await socket.async_read_some(buffer, kUseTask).
inline constexpr asio::use_awaitable_t<Executor> kUseTask{};

using TcpSocket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using SteadyTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, Executor>;

}  // namespace tollgate
