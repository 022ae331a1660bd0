#pragma once
// Precompiled header for code with coroutines or HTTP.
#include "common/pch/std_pch.h"

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
