#pragma once
// Precompiled headers of code with gRPC and coroutines.
#include "common/pch/proto_pch.h"

#include <boost/asio.hpp>
