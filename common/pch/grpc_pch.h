#pragma once
// Precompiled header for code with gRPC and coroutines.
#include "common/pch/proto_pch.h"

#include <boost/asio.hpp>
