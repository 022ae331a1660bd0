#pragma once
// Precompiled header for tests with gRPC and coroutines.
#include "common/pch/grpc_pch.h"

#include <gtest/gtest.h>
